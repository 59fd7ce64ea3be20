"""GRAPE as a scikit-learn classifier: films in, classes out; every setting is a parameter for searches."""

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
from medgrape.config import Config, ConfigError, load_config, parse_config, put
from medgrape.datasets.dataset import Dataset, SplitRule, checksum
from medgrape.errors import UserError
from medgrape.files import whole_folder
from medgrape.films.decoder import DecoderPool, Request
from medgrape.films.film import FilmError
from medgrape.reader import Reader
from medgrape.runs.checkpoint import LoadedRun, Run
from medgrape.sklearn.inputs import FitInput, LabelledFilm, class_names, column, gather_dataset, label_column
from medgrape.training.films import learnt_contents
from medgrape.training.run import TrainingJob, train

BETWEEN = "__"
_BATCH = 16


def configured(config: Config | Path | str | None, settings: Mapping[str, Any] | None, seed: int | None) -> Config:
    """Load the settings of a file or of a packaged recipe, and override some of them."""
    if not isinstance(config, Config | Path | str | None):
        raise ConfigError(f"config is a TOML file, the name of a recipe or a Config, not {config!r}.")
    tables = (config if isinstance(config, Config) else load_config(config)).model_dump()
    if not isinstance(settings, Mapping | None) or not all(isinstance(key, str) for key in settings or ()):
        raise ConfigError("Give settings by name, such as settings={'model.tau': 0.2}.")
    for key, value in (settings or {}).items():
        put(tables, key.replace(BETWEEN, "."), value.item() if isinstance(value, np.generic) else value)
    if seed is not None:
        tables["seed"] = seed
    return parse_config(tables)


def searchable(tables: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Return every setting of a table by its parameter name, such as ``stages__concepts__epochs``."""
    params: dict[str, Any] = {}
    for name, value in tables.items():
        if isinstance(value, dict):
            params |= searchable(value, f"{path}{name}{BETWEEN}")
        elif path:
            params[f"{path}{name}"] = value
    return params


@torch.no_grad()
def probabilities(run: Run | BaselineRun, films: Iterable[Path]) -> Float[np.ndarray, "films classes"]:
    """Predict films that are decoded in child processes; raise for the first one that cannot be read."""
    limits, preprocessing = run.config.limits, run.config.preprocessing
    rows = [np.empty((0, len(run.classes)))]
    with DecoderPool() as decoders:
        decoded = iter(decoders.read_all(Request(film, limits, preprocessing) for film in films))
        while batch := list(islice(decoded, _BATCH)):
            pixels = []
            for film in batch:
                if isinstance(film, FilmError):
                    raise film
                pixels.append(film.pixels)
            greys = torch.from_numpy(np.stack(pixels)).unsqueeze(1).float().div(255.0)
            logits = (
                run.model.predict_with_all_maps(greys)[0]
                if isinstance(run, BaselineRun)
                else run.model.predict_with_mean_maps(greys)[0].logits
            )
            rows.append(logits.double().softmax(dim=-1).numpy())
    return np.concatenate(rows)


class GrapeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """GRAPE for scikit-learn: fitted to ``labelled_films``, to paths with ``y``, or to a prepared data set."""

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
        """Store the parameters; they are checked in ``fit``, as scikit-learn requires.

        ``config`` is a TOML file, the name of a recipe, or a ``Config``; ``settings`` override it, such as
        ``{"model.tau": 0.2}``. ``validation`` is the fraction of patients that is held out to choose the best epochs.
        ``normal`` names classes without findings, if films are paths. Runs are kept in ``runs`` under a name made of
        their settings and films; without it they are deleted with the classifier. Fits with the same ``memory`` train
        the stages that they have in common once.
        """
        self.config = config
        self.settings = settings
        self.seed = seed
        self.validation = validation
        self.normal = normal
        self.runs = runs
        self.memory = memory

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with ``deep`` also every setting, such as ``stages__concepts__epochs``.

        Invalid settings are left out instead of raising, so that a classifier can always be shown and corrected.
        """
        own: dict[str, Any] = super().get_params(deep=False)
        try:
            return own | searchable(self._configured().model_dump()) if deep else own
        except ConfigError:
            return own

    def set_params(self, **params: Any) -> Self:  # noqa: ANN401 (as scikit-learn has it)
        """Set parameters and settings; if one is unknown or invalid, raise and change nothing."""
        own = {name: value for name, value in params.items() if BETWEEN not in name}
        settings = {name: value for name, value in params.items() if BETWEEN in name}
        if settings:
            settings = (own.get("settings", self.settings) or {}) | settings
            own["settings"] = {key.replace(BETWEEN, "."): value for key, value in settings.items()}
        super(GrapeClassifier, copy(self)).set_params(**own)._configured()
        super().set_params(**own)
        return self

    def fit(
        self,
        X: Any,  # noqa: N803, ANN401 (as scikit-learn has it)
        y: Sequence[Any] | None = None,
        *,
        patients: Sequence[str] | None = None,
    ) -> Self:
        """Train on films, holding out a fraction of the patients for validation.

        ``patients`` has the patient of each film. A folder or a ``Dataset`` is used with its own train and val splits;
        its test films are not read.
        """
        config, folder = self._configured(), self._runs_folder()
        folder.mkdir(parents=True, exist_ok=True)
        data, labels, class_of_label = self._data(X, y, patients, folder)
        name, memory = _fit_name(config, data), None if self.memory is None else Path(self.memory)
        with FileLock(folder / f".{name}.fit.lock"):  # parallel calls of the same fit train once
            self.run_ = train(TrainingJob(config, data, folder / name, memory))
        self._loaded = load_any(self.run_)
        self.classes_ = np.unique(self._loaded.run.classes if labels is None else labels)
        self._class_of_label = class_of_label or {name: name for name in self._loaded.run.classes}
        return self

    @property
    def reader_(self) -> Reader:
        """The fitted model as a ``Reader``, to open films, correct them and save the run."""
        check_is_fitted(self, "run_")
        if not isinstance(self._loaded, LoadedRun):
            raise UserError("Only GRAPE itself has a reader; model.method names a baseline.")
        return Reader(self._loaded)

    def predict_proba(self, X: Any) -> Float[np.ndarray, "films classes"]:  # noqa: N803, ANN401
        """Return a row for each film and a column for each of ``classes_``; raise if a film cannot be read."""
        check_is_fitted(self, "run_")
        columns = [self._loaded.run.classes.index(self._class_of_label[label]) for label in self.classes_.tolist()]
        return probabilities(self._loaded.run, _paths(X))[:, columns]

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803, ANN401
        """Return the most probable class of each film."""
        columns = self.predict_proba(X).argmax(axis=1)  # first: it raises where nothing was fitted
        return np.asarray(self.classes_[columns])

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401 (scikit-learn's own)
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.one_d_array = False, True
        tags.no_validation = True
        return tags

    def _configured(self) -> Config:
        return configured(self.config, self.settings, self.seed)

    def _runs_folder(self) -> Path:
        """Return the folder of runs; a temporary one is deleted with the classifier."""
        if self.runs is not None:
            return Path(self.runs)
        folder = tempfile.mkdtemp(prefix="medgrape-fit-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        return Path(folder)

    def _data(
        self,
        X: Any,  # noqa: N803, ANN401
        y: Sequence[Any] | None,
        patients: Sequence[str] | None,
        folder: Path,
    ) -> tuple[Path, np.ndarray | None, dict[Any, str] | None]:
        """Return the folder of a data set, the labels, and the class of each label in that data set."""
        if isinstance(X, str | Path | Dataset):
            if y is not None or patients is not None:
                raise UserError("A data set knows its own classes and patients; leave y and patients out.")
            return (_save_once(X, folder) if isinstance(X, Dataset) else Path(X)), None, None
        films = list(column(X, "films"))
        if y is None:
            if not all(isinstance(film, LabelledFilm) for film in films):
                raise UserError("The class of a path is unknown: give y, or films of labelled_films().")
            y = [film.record.class_name for film in films]
        labels = label_column(y, len(films))
        names = None if patients is None else [str(name) for name in column(patients, "patients", len(films))]
        class_of_label = class_names(films, labels)
        rule = SplitRule(validation=self.validation, seed=self._configured().seed)
        fit_input = FitInput(films, [class_of_label[label] for label in labels.tolist()], names)
        dataset = gather_dataset(fit_input, tuple(class_of_label.values()), self.normal, rule)
        return _save_once(dataset, folder), labels, class_of_label


def _fit_name(config: Config, data: Path) -> str:
    """Hash the settings, the labels and the content of the films."""
    parts = (config.model_dump_json(), checksum(data), *learnt_contents(data, config))
    return hashlib.sha256("/".join(parts).encode()).hexdigest()[:16]


def _save_once(dataset: Dataset, folder: Path) -> Path:
    """Save a data set under a name made of its checksum, so that the same films are saved once."""
    with tempfile.TemporaryDirectory() as draft:
        dataset.save(Path(draft))
        target = folder / f"films-{checksum(Path(draft))[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / f".{target.name}.lock"):  # parallel fits share the folder
        if not target.exists():
            with whole_folder(target) as place:
                dataset.save(place)
    return target


def _paths(films: Any) -> Iterator[Path]:  # noqa: ANN401
    if isinstance(films, str | Path | Dataset):
        raise UserError("Say which films to read: labelled_films(data, 'test').films, or a list of paths.")
    return (film.path if isinstance(film, LabelledFilm) else Path(film) for film in column(films, "films"))
