"""GRAPE as a scikit-learn classifier: films in, classes out, and every setting open to a search."""

import hashlib
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from filelock import FileLock
from jaxtyping import Float
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from medgrape.baselines.methods import BaselineRun, load_any
from medgrape.config import RECIPES, Config, ConfigError, load_config, parse_config, put
from medgrape.datasets.dataset import Dataset, SplitRule, checksum
from medgrape.errors import UserError, nearest
from medgrape.files import whole_folder
from medgrape.films.decoder import DecoderPool, Request
from medgrape.films.film import FilmError
from medgrape.reader import Reader
from medgrape.runs.checkpoint import LoadedRun, Run
from medgrape.sklearn.inputs import Given, LabelledFilm, class_names, column, gathered, label_column
from medgrape.training.films import learnt_contents
from medgrape.training.run import TrainingJob, train

PACKAGED = RECIPES
BETWEEN = "__"


def configured(config: Config | Path | str | None, settings: Mapping[str, Any] | None, seed: int | None) -> Config:
    """The settings of a file, or that come with the package under a name, with single ones put on top."""
    tables = _found(config).model_dump()
    if not isinstance(settings, Mapping | None) or not all(isinstance(key, str) for key in settings or ()):
        raise ConfigError("Give single settings by their names, such as settings={'model.tau': 0.2}.")
    for key, value in (settings or {}).items():
        put(tables, key.replace(BETWEEN, "."), value.item() if isinstance(value, np.generic) else value)
    if seed is not None:
        tables["seed"] = seed
    return parse_config(tables)


def searchable(config: Config) -> dict[str, Any]:
    """Every setting that is in a table, by its name for a search."""
    return dict(_flat(config.model_dump(), ""))


def _flat(tables: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for name, value in tables.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{path}{name}{BETWEEN}")
        elif path:
            yield f"{path}{name}", value


def _found(config: Config | Path | str | None) -> Config:
    if isinstance(config, Config):
        return config
    if not isinstance(config, Path | str | None):
        raise ConfigError(f"config is a TOML file, a name of settings or a Config, not {config!r}.")
    if config is None or Path(config).is_file():
        return load_config(None if config is None else Path(config))
    known = sorted(path.stem for path in PACKAGED.glob("*.toml"))
    if str(config) not in known:
        raise ConfigError(
            f"There are no settings at {config}, and none of that name come with medgrape{nearest(str(config), known)}."
        )
    return load_config(PACKAGED / f"{config}.toml")


_BATCH = 16


def probabilities(run: Run | BaselineRun, films: Iterable[Path]) -> Float[np.ndarray, "films classes"]:
    """Every film once, decoded in processes that may die; one that cannot be read is an error that names it."""
    limits, preprocessing = run.config.limits, run.config.preprocessing
    with DecoderPool() as decoders:
        pixels = _readable(decoders, (Request(film, limits, preprocessing) for film in films))
        found = [_asked(run, batch) for batch in _batches(pixels)]
    return np.concatenate(found) if found else np.empty((0, len(run.classes)))


def _readable(decoders: DecoderPool, requests: Iterable[Request]) -> Iterator[np.ndarray]:
    for film in decoders.read_all(requests):
        if isinstance(film, FilmError):
            raise film
        yield film.pixels


def _batches(pixels: Iterator[np.ndarray]) -> Iterator[list[np.ndarray]]:
    while batch := list(islice(pixels, _BATCH)):
        yield batch


@torch.no_grad()
def _asked(run: Run | BaselineRun, batch: list[np.ndarray]) -> np.ndarray:
    films = torch.from_numpy(np.stack(batch)).unsqueeze(1).float().div(255.0)
    logits = run.model.read(films)[0] if isinstance(run, BaselineRun) else run.model.look(films)[0].logits
    return np.asarray(logits.double().softmax(dim=-1).numpy())


class GrapeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Learns from films of ``labelled_films``, from paths with y, or from a prepared data set with its own splits."""

    def __init__(
        self,
        config: Config | Path | str | None = "demo",
        *,
        settings: Mapping[str, Any] | None = None,
        seed: int | None = None,
        validation: float = 0.15,
        normal: Sequence[str] = (),
        runs: Path | str | None = None,
        memory: Path | str | None = None,
    ) -> None:
        """Nothing is read or checked before ``fit``, as scikit-learn wants it.

        ``config`` is a TOML file, the name of one that comes with medgrape, or a ``Config``; ``settings`` are put on
        top, as ``{"model.tau": 0.2}``. ``validation`` is the share of patients that each fit chooses its epochs by;
        ``normal`` names classes that show nothing, where films are mere paths. Runs are kept in ``runs``, each under a
        name made of its settings and films; without it they vanish with the classifier. Fits that share ``memory``
        learn the stages that they have in common once.
        """
        self.config = config
        self.settings = settings
        self.seed = seed
        self.validation = validation
        self.normal = normal
        self.runs = runs
        self.memory = memory

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What a clone is made of; ``deep``: also every setting, as ``stages__concepts__epochs``.

        Of settings that cannot be used none is told: whoever looks at a classifier, or mends it, is not refused.
        """
        own: dict[str, Any] = super().get_params(deep=False)
        try:
            return own | searchable(self._configured()) if deep else own
        except ConfigError:
            return own

    def set_params(self, **params: Any) -> Self:  # noqa: ANN401 (as scikit-learn has it)
        """Change some; one that does not exist, or cannot have that value, is refused at once, and nothing changes."""
        own = {name: value for name, value in params.items() if BETWEEN not in name}
        deep = {name.replace(BETWEEN, "."): value for name, value in params.items() if BETWEEN in name}
        if deep:
            known = own.get("settings", self.settings) or {}
            own["settings"] = {key.replace(BETWEEN, "."): value for key, value in known.items()} | deep
        tried = super(GrapeClassifier, copy(self)).set_params(**own)
        tried._configured()
        super().set_params(**own)
        return self

    def fit(
        self,
        X: Any,  # noqa: N803, ANN401 (as scikit-learn has it)
        y: Sequence[Any] | None = None,
        *,
        patients: Sequence[str] | None = None,
    ) -> Self:
        """Train on films, of which a share of patients is set aside to choose by; ``patients`` says whose they are.

        A folder or a ``Dataset`` is learnt from by its own train and val splits; its test films are not read.
        """
        config, room = self._configured(), self._room()
        room.mkdir(parents=True, exist_ok=True)
        data, labels, named = self._data(X, y, patients, room)
        name, memory = _fit_name(config, data), None if self.memory is None else Path(self.memory)
        with FileLock(room / f".{name}.fit.lock"):  # the same fit twice at the same time is one training
            self.run_ = train(TrainingJob(config, data, room / name, memory))
        self._loaded = load_any(self.run_)
        self.classes_ = np.unique(self._loaded.run.classes if labels is None else labels)
        self._named = named or {name: name for name in self._loaded.run.classes}
        return self

    @property
    def reader_(self) -> Reader:
        """The model at the light box: to open films with, to correct, to save."""
        check_is_fitted(self, "run_")
        if not isinstance(self._loaded, LoadedRun):
            raise UserError("Only GRAPE itself has a reader; this is one of the methods that it is compared with.")
        return Reader(self._loaded)

    def predict_proba(self, X: Any) -> Float[np.ndarray, "films classes"]:  # noqa: N803, ANN401
        """A row for each film, a column for each of ``classes_``; a film that cannot be read is an error."""
        check_is_fitted(self, "run_")
        columns = [self._loaded.run.classes.index(self._named[label]) for label in self.classes_.tolist()]
        return probabilities(self._loaded.run, _paths(X))[:, columns]

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803, ANN401
        """The most probable class of each film."""
        shares = self.predict_proba(X)
        return np.asarray(self.classes_[shares.argmax(axis=1)])

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401 (scikit-learn's own)
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.one_d_array = False, True
        tags.no_validation = True
        return tags

    def _configured(self) -> Config:
        return configured(self.config, self.settings, self.seed)

    def _room(self) -> Path:
        """Where runs go."""
        if self.runs is not None:
            return Path(self.runs)
        room = tempfile.mkdtemp(prefix="medgrape-fit-")
        weakref.finalize(self, shutil.rmtree, room, ignore_errors=True)
        return Path(room)

    def _data(
        self,
        films: Any,  # noqa: ANN401
        y: Sequence[Any] | None,
        patients: Sequence[str] | None,
        room: Path,
    ) -> tuple[Path, np.ndarray | None, dict[Any, str] | None]:
        """The folder of a data set, the labels as they were given, and what each is called in that data set."""
        if isinstance(films, str | Path | Dataset):
            if y is not None or patients is not None:
                raise UserError("A data set knows its own classes and patients; leave y and patients out.")
            return (_kept(films, room) if isinstance(films, Dataset) else Path(films)), None, None
        given = list(column(films, "films"))
        told = [film.record.class_name for film in _labelled(given)] if y is None else y
        labels = label_column(told, len(given))
        owners = None if patients is None else [str(one) for one in column(patients, "patients", len(given))]
        named = class_names(given, labels)
        rule = SplitRule(validation=self.validation, seed=self._configured().seed)
        described = Given(given, [named[label] for label in labels.tolist()], owners)
        return _kept(gathered(described, tuple(named.values()), self.normal, rule), room), labels, named


def _fit_name(config: Config, data: Path) -> str:
    """Made of the settings, the labels and what is in the films' files: whatever is another fit has another name."""
    told = (config.model_dump_json(), checksum(data), *learnt_contents(data, config))
    return hashlib.sha256("/".join(told).encode()).hexdigest()[:16]


def _kept(dataset: Dataset, room: Path) -> Path:
    """On disk, under a name made of what it holds: the same films are the same data set again."""
    with tempfile.TemporaryDirectory() as draft:
        dataset.save(Path(draft))
        folder = room / f"films-{checksum(Path(draft))[:16]}"
    room.mkdir(parents=True, exist_ok=True)
    with FileLock(room / f".{folder.name}.lock"):  # fits at the same time share a room
        if not folder.exists():
            with whole_folder(folder) as place:
                dataset.save(place)
    return folder


def _labelled(films: Sequence[Any]) -> Sequence[LabelledFilm]:
    if not all(isinstance(film, LabelledFilm) for film in films):
        raise UserError("Of films that are mere paths nobody knows the class: give y, or films of labelled_films().")
    return films


def _paths(films: Any) -> Iterator[Path]:  # noqa: ANN401
    if isinstance(films, str | Path | Dataset):
        raise UserError("Say which films: labelled_films(data, 'test').films, or a list of paths.")
    return (film.path if isinstance(film, LabelledFilm) else Path(film) for film in column(films, "films"))
