"""One row: a variant and a seed, from raw folders to figures, in steps that are each done once."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from medgrape.benchmarks.real_films_figures import box_figures, film_figures, label_figures
from medgrape.benchmarks.real_films_pictures import draw_pictures
from medgrape.benchmarks.real_films_training import train_apart
from medgrape.benchmarks.real_films_variants import Variant
from medgrape.config import Config
from medgrape.data.dataset import Dataset, checksum
from medgrape.data.draft import Draft, finish
from medgrape.data.files import whole_file
from medgrape.data.sources.nih import read_nih
from medgrape.data.sources.tbx11k import read_tbx11k
from medgrape.data.splits import SplitRule
from medgrape.errors import UserError
from medgrape.evaluation.plain import plain
from medgrape.evaluation.reading import evaluate_run
from medgrape.evaluation.vocabulary import TrialPlan, leave_one_out
from medgrape.feedback.calibration import calibrate, keep
from medgrape.feedback.thresholds import CalibrationError
from medgrape.model.checkpoint import LoadedRun, load_run
from medgrape.model.manifest import MANIFEST
from medgrape.progress import Track, Watch
from medgrape.training.run import Order

TEST, VALIDATION = 0.2, 0.15
PICTURED = 0
"""The seed whose films are drawn."""
ONE_FILM = TrialPlan(films=(1,), seeds=5)


@dataclass(frozen=True)
class Row:
    """What is trained and measured, and where everything goes."""

    variant: Variant
    seed: int
    config: Config
    source: Path
    """The published data set's folder."""
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
        return result_path(self.out, self.variant, self.seed)

    @property
    def settings(self) -> dict[str, Any]:
        """What the settings say beyond the defaults, as plain data."""
        told: dict[str, Any] = plain(self.config.model_dump(mode="json", exclude_defaults=True))
        return told

    def done(self) -> bool:
        """Whether its figures are there; figures of other settings are never taken for these."""
        if not self.result.is_file():
            return False
        if json.loads(self.result.read_text("utf-8"))["settings"] != self.settings:
            raise UserError(
                f"{self.result} was made with other settings; remove it and {self.run}, or choose another --out."
            )
        return True


def run_path(out: Path, variant: str, seed: int) -> Path:
    """Where the run of a row is."""
    return out / "runs" / f"{variant}-seed{seed}"


def result_path(out: Path, variant: Variant, seed: int) -> Path:
    """Where the figures of a row are."""
    return out / "results" / f"{variant.name}-seed{seed}.json"


def make(row: Row, *, track: Track, watch: Watch) -> None:
    """Prepare, train, calibrate, evaluate, draw; the figures are written last."""
    data = _prepared(row, track)
    cost = _trained(row, data, track, watch)
    loaded, uncalibrated = _calibrated(_loaded(row), data, track)
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
        "variant": row.variant.name, "seed": row.seed, "settings": row.settings, "data_set": checksum(data),
        "figures": figures, **cost, "uncalibrated": uncalibrated, "pictures": pictures,
    }  # fmt: skip
    _write(row.result, told)


def _prepared(row: Row, track: Track) -> Path:
    """The films, divided by the row's seed. Official test films are left out: rows are there to choose by."""
    if (row.data / "dataset.toml").is_file():
        if Dataset.load(row.data).source.folder != str(row.source.resolve()):
            raise UserError(f"{row.data} was prepared from another folder than {row.source}; choose another --out.")
        return row.data
    draft = _read(row, track)
    draft.films = [film for film in draft.films if film.split != "test"]
    finish(draft, row.data, SplitRule(VALIDATION, TEST, row.seed), allow_missing=True)
    return row.data


def _read(row: Row, track: Track) -> Draft:
    if row.variant.data == "tbx11k":
        return read_tbx11k(row.source, extra=row.variant.extra, track=track)
    return read_nih(row.source, track=track)


def _trained(row: Row, data: Path, track: Track, watch: Watch) -> dict[str, Any]:
    """Train, unless that is done, and tell what it took."""
    known = row.out / "costs" / f"{row.name}.json"
    if not (known.is_file() and (row.run / MANIFEST).is_file()):
        order = Order(row.config, data, row.run, kept=row.out / "stages")
        _write(known, asdict(train_apart(order, track=track, watch=watch)))
    told: dict[str, Any] = json.loads(known.read_text("utf-8"))
    return told


def _loaded(row: Row) -> LoadedRun:
    loaded = load_run(row.run)
    if loaded.run.config != row.config:
        raise UserError(f"{row.run} was trained with other settings; remove it, or choose another --out.")
    return loaded


def _calibrated(loaded: LoadedRun, data: Path, track: Track) -> tuple[LoadedRun, str | None]:
    """With thresholds for the safety check; else why there are none, such as too few boxes to learn them from."""
    if loaded.run.safety is not None:
        return loaded, None
    try:
        return keep(loaded, calibrate(loaded, data, balanced=True, track=track)), None
    except CalibrationError as refusal:
        return loaded, str(refusal)


def _write(path: Path, told: dict[str, Any]) -> None:
    with whole_file(path) as draft:
        draft.write_text(json.dumps(told, indent=1, allow_nan=False) + "\n", "utf-8")
