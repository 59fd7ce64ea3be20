"""Where a run on this disk came from, if that was a model hub: the copy stays as it was fetched."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from medgrape.data.files import whole_file
from medgrape.model.manifest import RunError


@dataclass(frozen=True)
class HubOrigin:
    """One commit of one repository: for ever the same model."""

    repository: str
    commit: str

    def __str__(self) -> str:
        return f"{self.repository}@{self.commit}"

    def note(self, folder: Path) -> None:
        """Write it down beside a copy, never in it: a run holds nothing but itself."""
        with whole_file(_beside(folder)) as draft:
            draft.write_text(json.dumps(asdict(self), indent=2) + "\n", "utf-8")


def origin_of(folder: Path) -> HubOrigin | None:
    """What was noted beside a run; None for one that was trained or copied here."""
    try:
        return HubOrigin(**json.loads(_beside(folder.resolve()).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def refuse_hub_copy(folder: Path) -> None:
    """A commit that was changed here would no longer be what everybody else calls by that name."""
    origin = origin_of(folder)
    if origin is not None:
        raise RunError(
            f"This is the copy of {origin}, which stays as it was fetched; save a run of your own first: "
            f'mg.load("{origin.repository}", revision="{origin.commit}").save("runs/own").'
        )


def place_beside(run: Path) -> Path:
    """A name to put things beside a run by; of a copy from a hub, in the folder where somebody works."""
    origin = origin_of(run)
    return run.resolve() if origin is None else Path.cwd() / origin.repository.rpartition("/")[2]


def _beside(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.hub.json")
