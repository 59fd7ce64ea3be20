"""A model card, written from a run and from the report and audit beside it; no figure on it comes from elsewhere."""

import shlex
from pathlib import Path
from typing import Any

from medgrape.errors import UserError, first_line
from medgrape.hub.changes import changed
from medgrape.hub.front_matter import front_matter
from medgrape.hub.limits import limits
from medgrape.hub.measured import Measured, measured_beside
from medgrape.model.checkpoint import LoadedRun, Run, load_run
from medgrape.model.export_record import NOTICE
from medgrape.model.manifest import RunError, version_of
from medgrape.model.own_record import needed_parts
from medgrape.model.run_hub import refuse_unnameable

CARD = "README.md"
"""Where a hub looks for it."""
_EXTRAS = {"efficientnet-lite0": "lite", "transformers": "text"}
"""What else of medgrape a backbone of each kind takes."""


def card_of(run: Path, *, repository: str = "", licence: str = "other", removed: bool = False) -> str:
    """The card of the run in a folder; ``removed``: it is published without its pictures of training films."""
    return written(load_run(run), measured_beside(run), repository=repository, licence=licence, removed=removed)


def written(
    loaded: LoadedRun, measured: Measured, *, repository: str, licence: str, removed: bool, unnamed: bool = False
) -> str:
    """Head and text; ``unnamed``: it is published without the names of whom it never shows."""
    from jinja2 import UndefinedError  # slow to import

    if repository:
        refuse_unnameable(repository)
    try:
        return _rendered(loaded, measured, repository=repository, licence=licence, removed=removed, unnamed=unnamed)
    except UserError:
        raise
    except (AttributeError, LookupError, TypeError, ValueError, UndefinedError) as error:
        raise RunError(
            f"No card can be written of {loaded.folder}: its metrics.json, or the report beside it, lacks something or "
            f"has it in another form ({type(error).__name__}: {first_line(error)}); train or evaluate it again."
        ) from error


def _rendered(
    loaded: LoadedRun, measured: Measured, *, repository: str, licence: str, removed: bool, unnamed: bool
) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # slow to import

    environment = Environment(  # Markdown, which a hub cleans before it shows it
        loader=PackageLoader("medgrape.hub"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        keep_trailing_newline=True, autoescape=False,  # noqa: S701
    )  # fmt: skip
    environment.filters["cell"] = _cell
    name = repository.rpartition("/")[2] or loaded.folder.name
    return environment.get_template("card.md").render(
        head=front_matter(loaded, measured, name, licence).strip(),
        name=name,
        repository=repository,
        licence=licence,
        notice=NOTICE,
        run=loaded.run,
        manifest=loaded.manifest,
        version=version_of(loaded.folder),
        data=loaded.run.metrics.get("data"),
        stages=_stages(loaded.run),
        measured=measured,
        changed=changed(loaded.run),
        limits=limits(loaded, measured),
        pictures=0 if removed else len(loaded.run.exemplars.films),
        removed=removed,
        unnamed=unnamed,
        installed=_installed(loaded.run),
        parts=loaded.run.own_parts,
    )


def _installed(run: Run) -> str:
    """What pip is told to install: this package and, in their versions, the packages that reading needs."""
    extras = ",".join(filter(None, ("hub", _EXTRAS.get(run.grape.backbone.blueprint.kind))))
    others = {f"{part['distribution']}=={part['version']}" for part in needed_parts(run.own_parts)}
    return " ".join([f'"medgrape[{extras}]"', *(shlex.quote(one) for one in sorted(others))])


def _stages(run: Run) -> list[dict[str, Any]]:
    """What validation said of each stage, with the trivial answer's figure where there is one."""
    metrics, trivial = run.metrics, {"mean AUC": "0.500"}
    if "data" in metrics:
        known = metrics["data"]["trivial"]
        trivial["macro-F1"] = f"{known['macro_f1']:.3f} (always “{known['answer']}”)"
        shown = sum(count > 0 for count in metrics["data"]["splits"]["val"]["concepts"].values())
        kinds = shown + run.config.stages.prototypes.background  # ordinary tissue is one more to tell apart
        trivial["balanced accuracy"] = f"{1 / max(kinds, 1):.3f} (one answer for {kinds} kinds of tissue)"
    return [
        {"stage": stage, "trivial": trivial.get(told["figure"], "not known"), **told}
        for stage, told in metrics["validation"].items()
    ]


def _cell(text: object) -> str:
    """In a table's cell, on one line."""
    return " ".join(str(text).split()).replace("|", "\\|")
