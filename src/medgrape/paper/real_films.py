"""Real films: the jobs and figures of each variant and seed, from the published folders of TBX11K and NIH."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from medgrape.config import RECIPES, Config
from medgrape.datasets.dataset import SPLITS, Dataset, SplitRule, checksum
from medgrape.datasets.draft import finish
from medgrape.datasets.sources.nih import read_nih
from medgrape.datasets.sources.tbx11k import is_borrowed, read_tbx11k
from medgrape.errors import UserError
from medgrape.evaluation.evaluate import evaluate_run
from medgrape.evaluation.few_shot import TrialPlan, VocabularyTrial, leave_one_out
from medgrape.evaluation.report import Evaluation
from medgrape.evaluation.safety_check import CALIBRATED, MAJORITY
from medgrape.files import write_json, write_text
from medgrape.paper.jobs import Job, read_json, settings_of, software
from medgrape.paper.measures import pointing_shares
from medgrape.paper.pictures import draw_hits
from medgrape.paper.real_film_tables import ALL, Summary, page
from medgrape.paper.recipes import Variant, chosen_variants
from medgrape.paper.reproduce import Request
from medgrape.paper.training_cost import train_in_child
from medgrape.progress import Track, Watch
from medgrape.runs.checkpoint import load_run
from medgrape.runs.manifest import MANIFEST
from medgrape.safety.calibration import NOT_CALIBRATED
from medgrape.training.plan import FIRST
from medgrape.training.run import TrainingJob

NAME = "real-films"
TEST, VALIDATION = 0.2, 0.15
PICTURED = 0  # the seed whose films are drawn
ONE_FILM = TrialPlan(films=(1,), seeds=5)
ACTIVE_OBSOLETE = ("active_tb", "obsolete_tb")  # the concepts whose AUC against each other is reported
LEFT_OUT = "obsolete_tb"  # the concept that is learnt again from one film
Figures = dict[str, float | None]  # name, in dotted parts, to figure; None if the figure is not defined


@dataclass(frozen=True)
class RealFilmsJob(Job):
    """One variant and seed on real films."""

    variant: Variant
    seed: int
    config: Config
    source: Path | None  # folder of the published data set; without it nothing can be trained
    out: Path
    indent = 1

    @property
    def name(self) -> str:
        """Name of its folders and files."""
        return f"{self.variant.name}-seed{self.seed}"

    @property
    def title(self) -> str:
        """The name that is shown when the job starts."""
        return f"{self.variant.name}, seed {self.seed} ({self.variant.title})"

    @property
    def data(self) -> Path:
        """The prepared data set, which several variants share."""
        extra = "-extra" if self.variant.extra else ""
        return self.out / "data" / f"{self.variant.data}{extra}-seed{self.seed}"

    @property
    def run(self) -> Path:
        """The folder of the trained model."""
        return self.out / "runs" / self.name

    @property
    def begun_with(self) -> dict[str, Any]:
        """Settings, published folder, and the run that it starts from; None for one that is not known now."""
        config, parent = self.config, None
        if self.variant.after:  # the weights count, not their path
            parent = _fingerprint(Path(config.backbone.weights))
            config = _with_weights(config, "")
        folder = None if self.source is None else str(self.source.resolve())
        return {"settings": settings_of(config), "folder": folder, "parent": parent}

    def check(self) -> None:
        """Raise if the published folder is missing."""
        data = self.variant.data
        if self.source is None:
            raise UserError(f"The variant {self.variant.name!r} needs --{data} FOLDER; or name others with --variant.")
        if not self.source.is_dir():
            raise UserError(f"There is no folder {self.source}; --{data} takes the published data set.")

    def make(self, track: Track, watch: Watch) -> dict[str, Any]:
        """Prepare, train, calibrate, evaluate and draw."""
        self._prepare(track)
        trained = self._train(track, watch)
        loaded = load_run(self.run)
        if loaded.run.config != self.config:
            raise UserError(f"{self.run} was trained with other settings; remove it, or choose another --out.")
        evaluation, _ = evaluate_run(loaded, self.data, self.out / "reports" / self.name, track=track)
        dataset = Dataset.load(self.data)
        figures: Figures = {f"films.{split}": len(dataset.in_split(split)) for split in SPLITS}
        figures |= {"films.read": evaluation.films.read, "films.with_boxes": evaluation.films.with_boxes}
        if self.variant.data == "tbx11k":
            figures |= box_figures(evaluation)
            figures |= one_shot_figures(leave_one_out(loaded, self.data, ONE_FILM, track=track))
        else:
            figures |= label_figures(evaluation)
        pictures, pairs = {}, evaluation.localisation.pairs
        if self.seed == PICTURED and pairs:
            pictures = draw_hits(loaded, self.data, pairs, self.out / "pictures" / self.variant.name, seed=self.seed)
        return {
            "variant": self.variant.name, "seed": self.seed, "data_set": checksum(self.data), "figures": figures,
            **trained, "pictures": pictures, "uncalibrated": loaded.run.metrics.get(NOT_CALIBRATED),
        }  # fmt: skip

    def _prepare(self, track: Track) -> None:
        """Split the films by the seed, without official test films, because variants are chosen by these tables."""
        self.check()
        assert self.source is not None  # noqa: S101 (checked)
        if (self.data / "dataset.toml").is_file():
            if Dataset.load(self.data).source.folder != str(self.source.resolve()):
                raise UserError(
                    f"{self.data} was prepared from another folder than {self.source}; choose another --out."
                )
            return
        if self.variant.data == "nih":
            draft = read_nih(self.source, track=track)
        else:
            draft = read_tbx11k(self.source, extra=self.variant.extra, track=track)
            if self.variant.extra and not any(is_borrowed(film.path) for film in draft.films):
                raise UserError(
                    f"The variant {self.variant.name!r} needs the films that TBX11K borrowed, in imgs/extra; "
                    f"{self.source} has none."
                )
        draft.films = [film for film in draft.films if film.split != "test"]
        finish(draft, self.data, SplitRule(VALIDATION, TEST, self.seed), allow_missing=True)

    def _train(self, track: Track, watch: Watch) -> dict[str, Any]:
        """Train, unless that is done. Return time and memory, with the inputs and the software of the training."""
        path = self.out / "costs" / f"{self.name}.json"
        payload = read_json(path)
        if payload is None or not (self.run / MANIFEST).is_file():
            inputs = {"begun_with": self.begun_with, "software": software()}
            kept = self.out / "stages"
            job = TrainingJob(self.config, self.data, self.run, stage_cache=kept, cached_stages=(FIRST,))
            payload = asdict(train_in_child(job, track=track, watch=watch)) | inputs
            write_json(path, payload, indent=self.indent)
        self.refuse_other(payload, self.run)
        return payload


def _with_weights(config: Config, weights: str) -> Config:
    return config.model_copy(update={"backbone": config.backbone.model_copy(update={"weights": weights})})


def _fingerprint(run: Path) -> str | None:
    """A fingerprint of backbone and CAM, the parts that another run starts from; None if there is no run."""
    if not (run / MANIFEST).is_file():
        return None
    digest = hashlib.sha256()
    for name, tensor in sorted(load_file(run / "model.safetensors").items()):
        if name.startswith(("backbone.", "cam.")):
            digest.update(name.encode() + tensor.numpy().tobytes())
    return digest.hexdigest()[:12]


def box_figures(evaluation: Evaluation) -> Figures:
    """Return the figures of TBX11K: the pointing game and the safety check."""
    localisation, interaction = evaluation.localisation, evaluation.interaction
    figures: Figures = {}
    pointings = {ALL: localisation.per_pair} | {concept.name: concept.pointing for concept in localisation.concepts}
    for name, pointing in pointings.items():
        if pointing is not None:
            shares = {"pairs": pointing.count} | pointing_shares(pointing)
            figures |= {f"pointing.{name}.{figure}": value for figure, value in shares.items()}
    if interaction is None:
        return figures
    for prefix, check in (("safety", interaction.named(CALIBRATED)), ("majority", interaction.named(MAJORITY))):
        if check is not None:
            rates = {"balanced": check.balanced}
            rates |= {f"{ALL}.caught": check.caught, f"{ALL}.false_alarms": check.false_alarms}
            for concept in check.concepts:
                name = concept.name
                rates |= {f"{name}.caught": concept.caught, f"{name}.false_alarms": concept.false_alarms}
            figures |= {f"{prefix}.{name}": None if rate is None else rate.share for name, rate in rates.items()}
    pairs = interaction.telling_apart.pairs
    aucs = (pair.auc for pair in pairs if (pair.name, pair.against) == ACTIVE_OBSOLETE)
    return figures | {"telling_apart": next(aucs, None)}


def one_shot_figures(trial: VocabularyTrial) -> Figures:
    """Return the pointing game of a TBX11K finding learnt from one film, and its share of full supervision."""
    concept = next((concept for concept in trial.concepts if concept.name == LEFT_OUT), None)
    if concept is None:
        return {}
    mean = concept.shots[0].pointing.mean
    return {
        "one_shot.pointing": mean,
        "one_shot.full": concept.full,
        "one_shot": mean / concept.full if concept.full else None,
    }


def label_figures(evaluation: Evaluation) -> Figures:
    """Return the figures of NIH: classes and concepts of whole films."""
    classes, detection = evaluation.classification, evaluation.detection
    figures: Figures = {
        "macro_f1": classes.macro_f1,
        "majority.macro_f1": None if classes.majority is None else classes.majority.macro_f1,
        "auc.all": detection.mean_auc,
    }
    for concept in detection.concepts:
        figures |= {f"auc.{concept.name}": concept.auc, f"present.{concept.name}": concept.present}
    return figures


@dataclass(frozen=True)
class RealFilms(Request):
    """The tables of some variants and seeds on real films."""

    variants: tuple[Variant, ...]
    sources: Mapping[str, Path | None]  # published folder of each data set, if the user named it
    out: Path
    names: tuple[str, ...] = ()  # variants to run; all if empty
    seeds: tuple[int, ...] = ()  # seeds to run; those of each variant if empty
    configs: Path = field(default_factory=lambda: RECIPES)
    reports_after_each = True

    def jobs(self) -> tuple[RealFilmsJob, ...]:
        """Return the jobs of the variants and seeds, with all settings checked."""
        return self._jobs(self.names, self.seeds)

    def _jobs(self, names: Sequence[str], seeds: Sequence[int]) -> tuple[RealFilmsJob, ...]:
        return tuple(
            RealFilmsJob(variant, seed, self._config(variant, seed), self.sources[variant.data], self.out)
            for variant in chosen_variants(self.variants, names)
            for seed in seeds or variant.seeds
        )

    def _config(self, variant: Variant, seed: int) -> Config:
        config = variant.config(seed, self.configs)
        return _with_weights(config, str(self.out / f"runs/{variant.after}-seed{seed}")) if variant.after else config

    def report(self) -> dict[str, Any]:
        """Write ``real-films.md`` and ``real-films.json`` from the results of all variants.

        Results of other settings or films do not count.
        """
        jobs = {(job.variant.name, job.seed): job for job in (*self._jobs((), ()), *self._jobs((), self.seeds))}
        results = {key: jobs[key].load_result(strict=False) for key in sorted(jobs)}
        summaries = [
            Summary(
                variant, {seed: result for (name, seed), result in results.items() if result and name == variant.name}
            )
            for variant in self.variants
        ]
        payload = {"suite": NAME, "variants": [summary.to_json() for summary in summaries]}
        write_json(self.out / f"{NAME}.json", payload, indent=1)
        write_text(self.out / f"{NAME}.md", page(summaries))
        return payload
