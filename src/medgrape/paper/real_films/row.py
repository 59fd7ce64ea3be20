"""One row: a variant and a seed, from raw folders to figures, in steps that are each done once."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from medgrape.config import Config
from medgrape.datasets.dataset import Dataset, SplitRule, checksum
from medgrape.datasets.draft import Draft, finish
from medgrape.datasets.sources.nih import read_nih
from medgrape.datasets.sources.tbx11k import is_borrowed, read_tbx11k
from medgrape.errors import UserError
from medgrape.evaluation.evaluate import evaluate_run
from medgrape.evaluation.few_shot import TrialPlan, leave_one_out
from medgrape.files import plain, whole_file
from medgrape.paper.real_films.figures import box_figures, film_figures, label_figures
from medgrape.paper.real_films.pictures import draw_pictures
from medgrape.paper.real_films.training import train_apart
from medgrape.paper.real_films.variants import Variant
from medgrape.progress import Track, Watch
from medgrape.runs.checkpoint import LoadedRun, load_run
from medgrape.runs.manifest import MANIFEST
from medgrape.safety.calibration import NOT_CALIBRATED
from medgrape.training.plan import FIRST
from medgrape.training.run import TrainingJob

PACKAGE = Path(__file__).resolve().parents[2]
TEST, VALIDATION = 0.2, 0.15
OTHER = {"settings": "other settings", "folder": "films of another folder", "parent": "another backbone to go on from"}
PICTURED = 0
"""The seed whose films are drawn."""
ONE_FILM = TrialPlan(films=(1,), seeds=5)


@dataclass(frozen=True)
class Row:
    """What is trained and measured, and where everything goes."""

    variant: Variant
    seed: int
    config: Config
    source: Path | None
    """The published data set's folder; None where nobody named one, and so nothing can be trained."""
    out: Path

    @property
    def name(self) -> str:
        """Of its folders and files."""
        return f"{self.variant.name}-seed{self.seed}"

    @property
    def data(self) -> Path:
        """The prepared data set, which variants share."""
        extra = "-extra" if self.variant.extra else ""
        return self.out / "data" / f"{self.variant.data}{extra}-seed{self.seed}"

    @property
    def run(self) -> Path:
        """The trained model."""
        return run_path(self.out, self.variant.name, self.seed)

    @property
    def result(self) -> Path:
        """All figures; there once the row is done."""
        return self.out / "results" / f"{self.name}.json"

    @property
    def begun_with(self) -> dict[str, Any]:
        """Settings, films and parent that its figures depend on; None for what nobody can tell now."""
        settings = self.config
        if self.variant.after:  # what is in the run counts, not where it lies
            settings = settings.model_copy(update={"backbone": settings.backbone.model_copy(update={"weights": ""})})
        return {
            "settings": plain(settings.model_dump(mode="json", exclude_defaults=True)),
            "folder": None if self.source is None else str(self.source.resolve()),
            "parent": _fingerprint(Path(self.config.backbone.weights)) if self.variant.after else None,
        }

    def check_source(self) -> Path:
        """The published folder, if it is one."""
        data = self.variant.data
        if self.source is None:
            raise UserError(f"The variant {self.variant.name!r} needs --{data} FOLDER; or name others with --variant.")
        if not self.source.is_dir():
            raise UserError(f"There is no folder {self.source}; --{data} takes the published data set.")
        return self.source

    def found(self) -> dict[str, Any] | None:
        """Its figures, if they are there and were begun with the same."""
        told = _read(self.result)
        return told if told is not None and self._other(told) is None else None

    def done(self) -> bool:
        """Whether its figures are there; ones that were begun with something else are an error."""
        told = _read(self.result)
        if told is not None:
            self.refuse_other(told, self.result)
        return told is not None

    def refuse_other(self, told: Mapping[str, Any], path: Path) -> None:
        """What was begun with something else is never taken for this row's."""
        other = self._other(told)
        if other is not None:
            raise UserError(f"{path} was made with {other}; remove it and {self.run}, or choose another --out.")

    def _other(self, told: Mapping[str, Any]) -> str | None:
        """What the figures were begun with instead; a folder that nobody names, a parent that is gone, may be any."""
        begun = told.get("begun_with", {})
        differs = (what for what, now in self.begun_with.items() if now is not None and begun.get(what) != now)
        return next((OTHER[what] for what in differs), None)


def _fingerprint(run: Path) -> str | None:
    """One short name for what another run takes from this one, backbone and CAM; None where there is no run."""
    if not (run / MANIFEST).is_file():
        return None
    told = hashlib.sha256()
    for name, tensor in sorted(load_file(run / "model.safetensors").items()):
        if name.startswith(("backbone.", "cam.")):
            told.update(name.encode() + tensor.numpy().tobytes())
    return told.hexdigest()[:12]


def run_path(out: Path, variant: str, seed: int) -> Path:
    """Where the run of a row is."""
    return out / "runs" / f"{variant}-seed{seed}"


def make(row: Row, *, track: Track, watch: Watch) -> None:
    """Prepare, train, calibrate, evaluate, draw; the figures are written last."""
    data = _prepared(row, track)
    trained = _trained(row, data, track, watch)
    loaded = _loaded(row)
    evaluation, _ = evaluate_run(loaded, data, row.out / "reports" / row.name, track=track)
    figures = film_figures(Dataset.load(data), evaluation)
    if row.variant.data == "tbx11k":
        figures |= box_figures(evaluation, leave_one_out(loaded, data, ONE_FILM, track=track))
    else:
        figures |= label_figures(evaluation)
    pictures = {}
    if row.seed == PICTURED and evaluation.localisation.pairs:
        prefix = row.out / "pictures" / row.variant.name
        pictures = draw_pictures(loaded, data, evaluation.localisation.pairs, prefix, seed=row.seed)
    told = {
        "variant": row.variant.name, "seed": row.seed, "data_set": checksum(data), "figures": figures, **trained,
        "pictures": pictures,
        "uncalibrated": loaded.run.metrics.get(NOT_CALIBRATED),
    }  # fmt: skip
    _write(row.result, told)


def _prepared(row: Row, track: Track) -> Path:
    """The films, divided by the row's seed. Official test films are left out: rows are there to choose by."""
    source = row.check_source()
    if (row.data / "dataset.toml").is_file():
        if Dataset.load(row.data).source.folder != str(source.resolve()):
            raise UserError(f"{row.data} was prepared from another folder than {source}; choose another --out.")
        return row.data
    draft = _draft(row, source, track)
    draft.films = [film for film in draft.films if film.split != "test"]
    finish(draft, row.data, SplitRule(VALIDATION, TEST, row.seed), allow_missing=True)
    return row.data


def _draft(row: Row, source: Path, track: Track) -> Draft:
    if row.variant.data == "nih":
        return read_nih(source, track=track)
    draft = read_tbx11k(source, extra=row.variant.extra, track=track)
    if row.variant.extra and not any(is_borrowed(film.path) for film in draft.films):
        raise UserError(
            f"The variant {row.variant.name!r} needs the films that TBX11K borrowed, in imgs/extra; {source} has none."
        )
    return draft


def _trained(row: Row, data: Path, track: Track, watch: Watch) -> dict[str, Any]:
    """Train, unless that is done, and tell what it took, what it was begun with and by which software."""
    path = row.out / "costs" / f"{row.name}.json"
    told = _read(path)
    if told is None or not (row.run / MANIFEST).is_file():
        begun = {"begun_with": row.begun_with, "software": software()}
        order = TrainingJob(row.config, data, row.run, stage_cache=row.out / "stages", cached_stages=(FIRST,))
        cost = train_apart(order, track=track, watch=watch)
        told = asdict(cost) | begun
        _write(path, told)
    row.refuse_other(told, row.run)
    return told


def _loaded(row: Row) -> LoadedRun:
    loaded = load_run(row.run)
    if loaded.run.config != row.config:
        raise UserError(f"{row.run} was trained with other settings; remove it, or choose another --out.")
    return loaded


@cache
def software() -> str:
    """One short name for exactly this code and these settings: rows of one table may come from several states of it."""
    told = hashlib.sha256()
    for path in sorted(path for kind in ("*.py", "*.toml") for path in PACKAGE.rglob(kind)):
        told.update(path.relative_to(PACKAGE).as_posix().encode() + path.read_bytes())
    return told.hexdigest()[:12]


def _read(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    try:
        told: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise UserError(f"{path} cannot be read ({error}); remove it, and its row is made again.") from error
    return told


def _write(path: Path, told: dict[str, Any]) -> None:
    with whole_file(path) as draft:
        draft.write_text(json.dumps(told, indent=1, allow_nan=False) + "\n", "utf-8")
