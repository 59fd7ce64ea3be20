"""A training as MLflow keeps it: the settings, every epoch's figures as the journal has them, and what came of it.

A server that cannot be reached when a training begins is refused: nobody wants to find that out after a night. One that
goes away later costs nothing but a warning; what it missed is sent as soon as it is back, and stands in the journal.
"""

import hashlib
import json
import logging
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from medgrape.config import Config
from medgrape.datasets.dataset import Dataset, checksum
from medgrape.errors import UserError, first_line
from medgrape.files import sha256, whole_file
from medgrape.runs.manifest import MANIFEST, parts_used
from medgrape.training.journal import Entry, figures

IDENTITY = "mlflow.json"
"""Beside the checkpoints of a training: which run of MLflow it goes on in."""
FILES = ("concepts.json", "metrics.json", "log.jsonl", "curves.png")
"""What may be sent along: no weights, no picture of any film, and not config.toml, which names whom it withholds."""
_NOTE = "Research software, not a medical device."
_ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",  # nothing leaves the house that nobody asked for
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",  # a training must not wait for who only listens
}
"""Unless somebody has set these otherwise."""
_AT_ONCE = 100
log = logging.getLogger("medgrape.training")


class TrackingError(UserError):
    """A tracking server that cannot be told of a training."""


@dataclass(frozen=True)
class Tracking:
    """Where MLflow keeps its experiments."""

    uri: str
    """``http://host:5000``, ``sqlite:///mlflow.db``, or whatever else MLflow takes."""
    experiment: str = "medgrape"
    files: bool = False
    """Send ``FILES`` along when all is done."""

    @property
    def shown(self) -> str:
        """The address without anybody's password."""
        return without_password(self.uri)

    @property
    def place(self) -> str:
        """A name for this address and experiment that tells nothing of either."""
        return hashlib.sha256(f"{self.uri}\n{self.experiment}".encode()).hexdigest()


@dataclass
class MlflowLog:
    """Told of every epoch by the journal; told again of what it missed."""

    tracking: Tracking
    client: Any
    run: str
    _waiting: list[Entry] = field(default_factory=list)
    _unasked: bool = False
    """MLflow may know some of those that wait, and has not yet said which."""
    _warned: bool = False

    def begin(self, entries: list[Entry]) -> None:
        """Send what earlier attempts reached and MLflow does not know yet."""
        self._waiting, self._unasked = list(entries), bool(entries)
        self._attempt(self._send)

    def add(self, entry: Entry) -> None:
        """One more epoch, after those that are still waiting."""
        self._waiting.append(entry)
        self._attempt(self._send)

    def finish(self, folder: Path) -> None:
        """The run is sealed: name it, send its files if they are wanted, and end."""
        ended = self._attempt(lambda: self._close(folder))
        if ended and not self._warned:
            return
        if ended:
            missed = "is back and has every epoch"
        elif self._waiting:
            missed = f"has missed the end and {len(self._waiting)} epochs, which log.jsonl tells"
        else:
            missed = "has every epoch, but could not be told that the training has ended"
        log.warning("MLflow at %s %s.", self.tracking.shown, missed)

    def end(self, status: str) -> None:
        """The training was broken off; it may be gone on with."""
        self._attempt(lambda: self.client.set_terminated(self.run, status))

    def _unknown(self) -> list[Entry]:
        known = {
            (stage, told.step)
            for stage in {entry["stage"] for entry in self._waiting}
            for told in self.client.get_metric_history(self.run, f"{stage}/train_loss")
        }
        return [entry for entry in self._waiting if (entry["stage"], entry["epoch"]) not in known]

    def _send(self) -> None:
        from mlflow.entities import Metric

        if self._unasked:
            self._waiting, self._unasked = self._unknown(), False
        while self._waiting:
            entry, now = self._waiting[0], int(time.time() * 1000)
            told = [Metric(name, value, now, entry["epoch"]) for name, value in figures(entry).items()]
            self.client.log_batch(self.run, metrics=told)
            self._waiting.pop(0)

    def _close(self, folder: Path) -> None:
        self._send()
        self.client.set_tag(self.run, "medgrape.run", sha256(folder / MANIFEST))
        for name in FILES if self.tracking.files else ():
            if (folder / name).is_file():
                self.client.log_artifact(self.run, str(folder / name))
        self.client.set_terminated(self.run)

    def _attempt(self, work: Callable[[], object]) -> bool:
        """Whether it could be done; the first failure is told, and none ends a training."""
        try:
            with quiet():
                work()
        except Exception as error:  # each kind of store fails in its own way
            if not self._warned:
                log.warning(
                    "MLflow at %s cannot be told (%s); the training goes on, and log.jsonl has every epoch.",
                    self.tracking.shown,
                    type(error).__name__,
                )
            self._warned = True
            return False
        return True


def open_log(tracking: Tracking, config: Config, data: Path, work: Path, name: str) -> MlflowLog:
    """The run of MLflow that this training is told to: a new one, or the one that it was begun in."""
    try:
        with quiet():
            client = _client(tracking)
            run = _gone_on_with(client, tracking, work) or _begun(client, tracking, config, data, name)
    except ModuleNotFoundError as missing:
        extras = "mlflow" if str(missing.name).startswith("mlflow") else "mlflow,server"
        raise TrackingError(f"Telling MLflow needs more packages: pip install 'medgrape[{extras}]'.") from missing
    except Exception as error:  # each kind of store fails in its own way
        raise TrackingError(
            f"MLflow at {tracking.shown} cannot be told of this training ({type(error).__name__}: "
            f"{without_password(first_line(error))[:200]}); start it, or train without --mlflow."
        ) from error
    with whole_file(work / IDENTITY) as draft:
        draft.write_text(json.dumps({"place": tracking.place, "run": run}) + "\n", "utf-8")
    return MlflowLog(tracking, client, run)


@contextmanager
def telling(log_of: MlflowLog | None, out: Path) -> Iterator[None]:
    """Tell MLflow how it ended, whichever way."""
    try:
        yield
    except BaseException as error:
        if log_of is not None:
            log_of.end("KILLED" if isinstance(error, KeyboardInterrupt) else "FAILED")
        raise
    if log_of is not None:
        log_of.finish(out)


def without_password(text: str) -> str:
    """The same with nobody's name and password in an address."""
    return re.sub(r"//\S*@", "//", text)  # to the last @: passwords may have / and @ in them


def flattened(table: Mapping[str, Any], path: str = "") -> dict[str, str]:
    """Settings by dotted keys, each as MLflow takes it. Whom the settings withhold, they withhold here, too."""
    found: dict[str, str] = {}
    for name, value in table.items():
        key = f"{path}{name}"
        if isinstance(value, Mapping) and value:
            found |= flattened(value, f"{key}.")
        elif key == "exemplars.withheld":
            found[key] = str(len(value))
        else:
            found[key] = value if isinstance(value, str) else json.dumps(value)
    return found


@contextmanager
def quiet() -> Iterator[None]:
    """MLflow and its database remark on their own future; what fails raises."""
    for name in ("mlflow", "alembic"):
        logging.getLogger(name).setLevel(logging.WARNING)
    with warnings.catch_warnings(action="ignore"):
        yield


def _client(tracking: Tracking) -> Any:  # noqa: ANN401 (MLflow's)
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=tracking.uri)


def _gone_on_with(client: Any, tracking: Tracking, work: Path) -> str | None:  # noqa: ANN401
    if not (work / IDENTITY).is_file():
        return None
    told = json.loads((work / IDENTITY).read_text("utf-8"))
    if told["place"] != tracking.place:
        return None
    client.update_run(told["run"], status="RUNNING")
    return str(told["run"])


def _begun(client: Any, tracking: Tracking, config: Config, data: Path, name: str) -> str:  # noqa: ANN401
    from mlflow.entities import Param, RunTag

    experiment = client.get_experiment_by_name(tracking.experiment)
    number = client.create_experiment(tracking.experiment) if experiment is None else experiment.experiment_id
    run = str(client.create_run(number, run_name=name).info.run_id)
    params = [Param(key, value) for key, value in flattened(config.model_dump(mode="json")).items()]
    for start in range(0, len(params), _AT_ONCE):
        client.log_batch(run, params=params[start : start + _AT_ONCE])
    client.log_batch(run, tags=[RunTag(key, value) for key, value in _tags(config, data).items()])
    return run


def _tags(config: Config, data: Path) -> dict[str, str]:
    own = {
        f"medgrape.part.{kind.replace(' ', '_')}": " ".join(one.values()) for kind, one in parts_used(config).items()
    }
    return own | {
        "mlflow.note.content": _NOTE,
        "medgrape.version": version("medgrape"),
        "medgrape.torch": version("torch"),
        "medgrape.dataset": Dataset.load(data).name,
        "medgrape.dataset_checksum": checksum(data),
    }
