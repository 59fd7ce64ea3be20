"""Real films: each variant and seed, from the published folders of TBX11K and NIH to a row of the tables."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from medgrape.evaluation.safety_check import CALIBRATED, MAJORITY, CheckFigures, ConceptAlarms
from medgrape.paper.jobs import Job, read_json, settings_of, software, write_json, write_text
from medgrape.paper.measures import pointing_shares
from medgrape.paper.pictures import draw_hits
from medgrape.paper.recipes import Variant, chosen_variants
from medgrape.paper.reproduce import Request, states_of_software
from medgrape.paper.tables import Column, Line, Table, Value, as_markdown, spread
from medgrape.paper.training_cost import train_in_child
from medgrape.progress import Track, Watch
from medgrape.runs.checkpoint import load_run
from medgrape.runs.manifest import MANIFEST
from medgrape.safety.calibration import NOT_CALIBRATED
from medgrape.training.plan import FIRST
from medgrape.training.run import TrainingJob

NAME = "real-films"
TEST, VALIDATION = 0.2, 0.15
PICTURED = 0
"""The seed whose films are drawn."""
ONE_FILM = TrialPlan(films=(1,), seeds=5)
ALL = "all"
"""In place of a concept's name: film-concept pairs of all concepts together."""
TOLD_APART = ("active_tb", "obsolete_tb")
LEFT_OUT = "obsolete_tb"
Figures = dict[str, float | None]
"""Name, in dotted parts, to figure; None if the figure is not defined."""


@dataclass(frozen=True)
class RealFilmsJob(Job):
    """One variant and seed."""

    variant: Variant
    seed: int
    config: Config
    source: Path | None
    """Folder of the published data set; None if nobody named one, and so nothing can be trained."""
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
        """The prepared data set, which variants share."""
        extra = "-extra" if self.variant.extra else ""
        return self.out / "data" / f"{self.variant.data}{extra}-seed{self.seed}"

    @property
    def run(self) -> Path:
        """The folder of the trained model."""
        return run_path(self.out, self.variant.name, self.seed)

    @property
    def result(self) -> Path:
        """The result file."""
        return self.out / "results" / f"{self.name}.json"

    @property
    def begun_with(self) -> dict[str, Any]:
        """Settings, published folder, and the run that it starts from; None for what is not known now."""
        config = self.config
        if self.variant.after:  # the weights count, not where they are
            config = config.model_copy(update={"backbone": config.backbone.model_copy(update={"weights": ""})})
        return {
            "settings": settings_of(config),
            "folder": None if self.source is None else str(self.source.resolve()),
            "parent": _fingerprint(Path(self.config.backbone.weights)) if self.variant.after else None,
        }

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
            order = TrainingJob(self.config, self.data, self.run, stage_cache=kept, cached_stages=(FIRST,))
            payload = asdict(train_in_child(order, track=track, watch=watch)) | inputs
            write_json(path, payload, self.indent)
        self.refuse_other(payload, self.run)
        return payload


def run_path(out: Path, variant: str, seed: int) -> Path:
    """Return the folder of a variant's trained model."""
    return out / "runs" / f"{variant}-seed{seed}"


def _fingerprint(run: Path) -> str | None:
    """Fingerprint of what another run takes from this one, backbone and CAM; None if there is no run."""
    if not (run / MANIFEST).is_file():
        return None
    digest = hashlib.sha256()
    for name, tensor in sorted(load_file(run / "model.safetensors").items()):
        if name.startswith(("backbone.", "cam.")):
            digest.update(name.encode() + tensor.numpy().tobytes())
    return digest.hexdigest()[:12]


def box_figures(evaluation: Evaluation) -> Figures:
    """TBX11K: the pointing game and the safety check."""
    localisation, interaction = evaluation.localisation, evaluation.interaction
    figures: Figures = {}
    pointings = {ALL: localisation.per_pair} | {concept.name: concept.pointing for concept in localisation.concepts}
    for name, pointing in pointings.items():
        if pointing is not None:
            shares = {"pairs": pointing.count} | pointing_shares(pointing)
            figures |= {f"pointing.{name}.{figure}": value for figure, value in shares.items()}
    if interaction is not None:
        figures |= _check_figures("safety", interaction.named(CALIBRATED))
        figures |= _check_figures("majority", interaction.named(MAJORITY))
        pairs = interaction.telling_apart.pairs
        figures["telling_apart"] = next((pair.auc for pair in pairs if (pair.name, pair.against) == TOLD_APART), None)
    return figures


def _check_figures(check: str, found: CheckFigures | None) -> Figures:
    if found is None:
        return {}
    rates = {f"{check}.balanced": found.balanced}
    named: dict[str, CheckFigures | ConceptAlarms] = {ALL: found} | {alarms.name: alarms for alarms in found.concepts}
    for name, alarms in named.items():
        rates |= {f"{check}.{name}.caught": alarms.caught, f"{check}.{name}.false_alarms": alarms.false_alarms}
    return {name: None if rate is None else rate.share for name, rate in rates.items()}


def one_shot_figures(trial: VocabularyTrial) -> Figures:
    """TBX11K: the pointing game of a finding learnt again from one film, and its share of full supervision."""
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
    """NIH: classes and concepts of whole films."""
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
    """Some variants and seeds, the published folders, and the output folder."""

    variants: tuple[Variant, ...]
    sources: Mapping[str, Path | None]
    """Data set to its published folder; None if nobody named one."""
    out: Path
    names: tuple[str, ...] = ()
    """Variants to run; all if empty."""
    seeds: tuple[int, ...] = ()
    """Seeds to run; those of each variant if empty."""
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
        if not variant.after:
            return config
        weights = str(run_path(self.out, variant.after, seed))
        return config.model_copy(update={"backbone": config.backbone.model_copy(update={"weights": weights})})

    def report(self) -> dict[str, Any]:
        """Write ``real-films.md`` and ``real-films.json`` from the results of all variants that are there."""
        found = summaries((*self._jobs((), ()), *self._jobs((), self.seeds)))
        payload = {"suite": NAME, "variants": [summary.to_json() for summary in found]}
        write_json(self.out / f"{NAME}.json", payload, indent=1)
        write_text(self.out / f"{NAME}.md", page(found))
        return payload


_COSTS = {"minutes": ("seconds", 60), "peak_gib": ("peak_bytes", 2**30)}


@dataclass(frozen=True)
class Summary:
    """One variant over the seeds that have a result."""

    variant: Variant
    results: Mapping[int, Mapping[str, Any]]
    """Seed to the content of the result file."""

    @property
    def missing(self) -> tuple[int, ...]:
        """Seeds of the variant without a result."""
        return tuple(seed for seed in self.variant.seeds if seed not in self.results)

    @property
    def count(self) -> str:
        """Number of seeds, with those that are missing."""
        if not self.missing:
            return str(len(self.results))
        absent = ", ".join(map(str, self.missing))
        return f"{len(self.results)} of {len(self.results) + len(self.missing)} (missing: seed {absent})"

    def figure(self, name: str) -> Value | None:
        """Mean over the seeds for which the figure is defined; None if it is for none."""
        if name in _COSTS:
            key, unit = _COSTS[name]
            return spread([float(result[key]) / unit for result in self.results.values()])
        return spread([result["figures"].get(name) for result in self.results.values()])

    def names(self) -> tuple[str, ...]:
        """Every figure that some seed has."""
        found = (name for result in self.results.values() for name in result["figures"])
        return tuple(dict.fromkeys((*found, *_COSTS)))

    def to_json(self) -> dict[str, Any]:
        """Means over the seeds, and the result of each seed."""
        values = {name: self.figure(name) for name in self.names()}
        return {
            **self.variant.model_dump(mode="json"),
            "n": len(self.results),
            "missing": list(self.missing),
            "figures": {
                name: None if value is None else {"mean": value.mean, "sd": value.sd, "se": value.se}
                for name, value in values.items()
            },
            "by_seed": {str(seed): result for seed, result in self.results.items()},
        }


def summaries(jobs: Iterable[RealFilmsJob]) -> tuple[Summary, ...]:
    """Summarise the results of each variant. Results of other settings or films do not count."""
    by_variant: dict[str, dict[int, RealFilmsJob]] = {}
    for job in jobs:
        by_variant.setdefault(job.variant.name, {})[job.seed] = job
    found = []
    for by_seed in by_variant.values():
        results = {seed: by_seed[seed].found(strict=False) for seed in sorted(by_seed)}
        variant = next(iter(by_seed.values())).variant
        found.append(Summary(variant, {seed: result for seed, result in results.items() if result is not None}))
    return tuple(found)


_DIGITS = {"minutes": 1, "peak_gib": 1, "pointing.{}.pairs": 0, "present.{}": 0}


def _columns(titles: Mapping[str, str]) -> tuple[Column, ...]:
    return tuple(Column(key, title, digits=_DIGITS.get(key, 3)) for title, key in titles.items())


BOXED = _columns({
    "mean map": "pointing.all.mean", "max map": "pointing.all.max", "CAM": "pointing.all.cam",
    "random point": "pointing.all.chance", "fixed prior": "pointing.all.fixed",
    "safety check, balanced": "safety.balanced", "majority answer, balanced": "majority.balanced",
    "active or obsolete, AUC (chance 0.5)": "telling_apart", "1 film, share of full": "one_shot",
    "minutes": "minutes", "peak GiB": "peak_gib",
})  # fmt: skip
BOXED_CONCEPT = _columns({
    "pairs": "pointing.{}.pairs", "mean map": "pointing.{}.mean", "max map": "pointing.{}.max",
    "CAM": "pointing.{}.cam", "random point": "pointing.{}.chance", "fixed prior": "pointing.{}.fixed",
    "caught": "safety.{}.caught", "false alarms": "safety.{}.false_alarms",
    "majority: caught": "majority.{}.caught", "majority: false alarms": "majority.{}.false_alarms",
})  # fmt: skip
LABELLED = _columns({
    "macro-F1": "macro_f1", "majority answer, macro-F1": "majority.macro_f1", "mean AUC (chance 0.5)": "auc.all",
    "minutes": "minutes", "peak GiB": "peak_gib",
})  # fmt: skip
LABELLED_CONCEPT = _columns({"films that show it": "present.{}", "AUC (chance 0.5)": "auc.{}"})
FILMS = tuple(Column(f"films.{split}", split, digits=0) for split in ("train", "val", "test"))
INTRODUCTION = """\
# Real films, run again

Made by `medgrape reproduce real-films`. Each figure is the mean ± standard deviation over n seeds; each seed trains
another model and tests it on other patients, a fifth of them. Pointing is counted by film and finding. The safety check
is calibrated for balance on validation films; balanced is the mean over findings of (caught + 1 - false alarms) / 2,
which is 0.5 for every answer that looks at no film; caught and false alarms of one finding are of the claims that name
it. Minutes count every stage, also one that another row had learnt already.
"""


def page(found: Sequence[Summary]) -> str:
    """All tables as Markdown, each figure beside its trivial baseline."""
    boxed, labelled = ([summary for summary in found if summary.variant.data == data] for data in ("tbx11k", "nih"))
    parts = [
        INTRODUCTION,
        *_section("TBX11K", boxed, BOXED, BOXED_CONCEPT),
        *_section("NIH ChestX-ray14", labelled, LABELLED, LABELLED_CONCEPT),
        *_remarks(found),
    ]
    return "\n".join(parts)


def _section(
    title: str, found: Sequence[Summary], columns: tuple[Column, ...], concept_columns: tuple[Column, ...]
) -> Iterator[str]:
    if not found:
        return

    def table(columns: tuple[Column, ...], shown: Sequence[Summary]) -> str:
        lines = [
            Line(row.variant.title, {"count": row.count, **{column.key: row.figure(column.key) for column in columns}})
            for row in shown
        ]
        return as_markdown(Table("variant", (Column("count", "n"), *columns), tuple(lines)))

    concepts = tuple(_by_concept(found, concept_columns))
    yield f"## {title}\n"
    yield table(columns, found)
    yield f"### {title}, by finding\n"
    yield as_markdown(Table("variant", (Column("finding", "finding"), *concept_columns), concepts))
    yield f"### {title}, films\n"
    yield table(FILMS, [summary for summary in found if summary.results])


def _by_concept(found: Iterable[Summary], columns: tuple[Column, ...]) -> Iterator[Line]:
    """A line for each concept of which the variant has the first column."""
    before, after = columns[0].key.split("{}")
    for summary in found:
        for name in summary.names():
            concept = name.removeprefix(before).removesuffix(after)
            if name == f"{before}{concept}{after}" and concept != ALL:
                figures = {column.key: summary.figure(column.key.format(concept)) for column in columns}
                yield Line(summary.variant.title, {"finding": concept, **figures})


def _remarks(found: Sequence[Summary]) -> Iterator[str]:
    """Pictures, the software, and models that could not be calibrated."""
    results = [(summary.variant, seed, result) for summary in found for seed, result in summary.results.items()]
    for variant, seed, result in results:
        for kind, drawn in result["pictures"].items():
            if drawn:
                films = ", ".join(f"{pair['film']} ({pair['concept']})" for pair in drawn)
                yield f"![{variant.title}, {kind}](pictures/{variant.name}-{kind}.png)\n"
                yield f"{variant.title}, seed {seed}, {kind}, drawn by lot: {films}.\n"
    states = states_of_software(result for _, _, result in results)
    if states:
        yield f"Made by software {', '.join(states)}; which row by which is in real-films.json.\n"
    for variant, seed, result in results:
        if result["uncalibrated"] and variant.data == "tbx11k":
            yield f"{variant.title}, seed {seed}: not calibrated. {result['uncalibrated']}\n"
