"""The log of a training: log.jsonl, TensorBoard events, a plot of the curves, and optionally MLflow.

If MLflow cannot be reached at the start, the training is refused. If MLflow is lost later, the user is warned, and the
missing epochs are sent when it is back; log.jsonl always has every epoch.
"""

import hashlib
import json
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from medgrape.concepts import colour
from medgrape.config import Config
from medgrape.datasets.cache import in_order
from medgrape.datasets.dataset import Dataset, checksum
from medgrape.errors import UserError, first_line
from medgrape.files import sha256, whole_file, write_json, write_text
from medgrape.progress import suppressed_messages
from medgrape.runs.manifest import MANIFEST, parts_used

Entry = dict[str, Any]
IDENTITY = "mlflow.json"  # File beside the checkpoints of a training with its run in MLflow
FILES = ("concepts.json", "metrics.json", "log.jsonl", "curves.png")
"""Files that may be sent to MLflow: no weights, no films, and not config.toml, which names withheld patients."""
_ENVIRONMENT = {  # Defaults of MLflow's environment variables; values that are set already are kept
    "MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_LOGGING_LEVEL": "WARNING",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1", "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",  # a training must not wait for MLflow
}  # fmt: skip
_PARAMS_PER_REQUEST = 100
log = logging.getLogger("medgrape.training")


class TrackingError(UserError):
    """An MLflow server that cannot be used."""


@dataclass(frozen=True)
class Tracking:
    """Where MLflow keeps its experiments."""

    uri: str  # `http://host:5000`, `sqlite:///mlflow.db`, or any other URI that MLflow accepts
    experiment: str = "medgrape"
    files: bool = False  # Send `FILES` at the end of training

    @property
    def shown(self) -> str:
        """The URI without a password."""
        return without_password(self.uri)

    @property
    def place(self) -> str:
        """A hash of URI and experiment."""
        return hashlib.sha256(f"{self.uri}\n{self.experiment}".encode()).hexdigest()


@dataclass
class MlflowLog:
    """Sends every epoch to MLflow, and keeps those that could not be sent for the next attempt."""

    tracking: Tracking
    client: Any
    run: str
    _waiting: list[Entry] = field(default_factory=list)
    _ask_first: bool = False  # MLflow may have some of the waiting epochs from an earlier attempt
    _warned: bool = False

    def begin(self, entries: list[Entry]) -> None:
        """Send the epochs of earlier attempts that MLflow does not have yet."""
        self._waiting, self._ask_first = list(entries), bool(entries)
        self._attempt(self._send)

    def add(self, entry: Entry) -> None:
        """Send an epoch after those that are still waiting."""
        self._waiting.append(entry)
        self._attempt(self._send)

    def finish(self, folder: Path) -> None:
        """Tag the MLflow run with the hash of the sealed run, send the files, and mark it as finished."""

        def close() -> None:
            self._send()
            self.client.set_tag(self.run, "medgrape.run", sha256(folder / MANIFEST))
            for name in FILES if self.tracking.files else ():
                if (folder / name).is_file():
                    self.client.log_artifact(self.run, str(folder / name))
            self.client.set_terminated(self.run)

        message = "has every epoch, but the run could not be marked as finished"
        if self._attempt(close):
            message = "is back and has every epoch" if self._warned else ""
        elif self._waiting:
            message = f"missed the end and {len(self._waiting)} epochs; see log.jsonl"
        if message:
            log.warning("MLflow at %s %s.", self.tracking.shown, message)

    def end(self, status: str) -> None:
        """Set the status of a training that was interrupted; it may be continued."""
        self._attempt(lambda: self.client.set_terminated(self.run, status))

    def _send(self) -> None:
        from mlflow.entities import Metric

        if self._ask_first:
            known = {
                (stage, metric.step)
                for stage in {entry["stage"] for entry in self._waiting}
                for metric in self.client.get_metric_history(self.run, f"{stage}/train_loss")
            }
            self._waiting = [entry for entry in self._waiting if (entry["stage"], entry["epoch"]) not in known]
            self._ask_first = False
        while self._waiting:
            entry, now = self._waiting[0], int(time.time() * 1000)
            metrics = [Metric(name, value, now, entry["epoch"]) for name, value in figures(entry).items()]
            self.client.log_batch(self.run, metrics=metrics)
            self._waiting.pop(0)

    def _attempt(self, work: Callable[[], object]) -> bool:
        """Return whether the work succeeded; the first failure is logged, and none ends a training."""
        try:
            with suppressed_messages(logging.INFO):
                work()
        except Exception as error:  # each kind of store raises its own errors
            if not self._warned:
                message = "MLflow at %s does not answer (%s); the training goes on, and log.jsonl has every epoch."
                log.warning(message, self.tracking.shown, type(error).__name__)
            self._warned = True
            return False
        return True


def figures(entry: Entry) -> dict[str, float]:
    """Return the figures of an epoch by stage and name, as TensorBoard and MLflow show them."""
    return {f"{entry['stage']}/{name}": value for name, value in entry.items() if isinstance(value, float)}


@dataclass
class TrainingLog:
    """The log of a training, with every epoch once: after an interruption it is rebuilt from the checkpoints."""

    folder: Path
    entries: list[Entry] = field(default_factory=list)
    mlflow: MlflowLog | None = None
    _events: Any = None

    def begin(self, entries: list[Entry]) -> None:
        """Start with the epochs of earlier attempts."""
        from tensorboardX.proto.event_pb2 import Event  # slow to import
        from tensorboardX.record_writer import RecordWriter

        events = self.folder / "tensorboard"
        shutil.rmtree(events, ignore_errors=True)
        events.mkdir(parents=True)
        self._events = RecordWriter(str(events / "events.out.tfevents.medgrape"))  # without the name of the machine
        self._events.write(Event(wall_time=time.time(), file_version="brain.Event:2").SerializeToString())
        self.entries = list(entries)
        for entry in entries:
            self._write_event(entry)
        self._write()
        if self.mlflow is not None:
            self.mlflow.begin(list(entries))

    def add(self, entry: Entry) -> None:
        """Add an epoch."""
        self.entries.append(entry)
        self._write_event(entry)
        self._write()
        if self.mlflow is not None:
            self.mlflow.add(entry)

    def close(self) -> None:
        """Close the TensorBoard events."""
        if self._events is not None:
            self._events.close()

    def _write(self) -> None:
        write_text(self.folder / "log.jsonl", "".join(json.dumps(line) + "\n" for line in self.entries))

    def _write_event(self, entry: Entry) -> None:
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.summary import scalar

        for name, value in figures(entry).items():
            event = Event(wall_time=time.time(), step=entry["epoch"], summary=scalar(name, value))
            self._events.write(event.SerializeToString())
        self._events.flush()

    def draw(self) -> None:
        """Plot losses and validation score of every stage side by side."""
        from matplotlib.figure import Figure

        stages = list(dict.fromkeys(entry["stage"] for entry in self.entries))
        figure = Figure(figsize=(4.2 * len(stages), 3.6), layout="constrained")
        for axes, stage in zip(figure.subplots(1, len(stages), squeeze=False)[0], stages, strict=True):
            _draw_stage(axes, stage, [entry for entry in self.entries if entry["stage"] == stage])
        with whole_file(self.folder / "curves.png") as draft:
            figure.savefig(draft, format="png", dpi=110)


def _draw_stage(axes: Any, stage: str, entries: list[Entry]) -> None:  # noqa: ANN401 (matplotlib's)
    epochs = [entry["epoch"] for entry in entries]
    axes.plot(epochs, [e["train_loss"] for e in entries], color=colour(4), marker=".", label="training loss")
    axes.plot(epochs, [e["val_loss"] for e in entries], color=colour(5), marker=".", ls="--", label="validation loss")
    axes.set_title(f"stage: {stage}", fontsize=10)
    axes.set_xlabel("epoch")
    axes.xaxis.get_major_locator().set_params(integer=True)
    right = axes.twinx()
    name = entries[-1]["figure"]
    right.plot(epochs, [e["val_score"] for e in entries], color=colour(2), marker="o", ms=3, label=f"validation {name}")
    best = max(entries, key=lambda e: (e["val_score"], -e["val_loss"]))
    right.axvline(best["epoch"], color="#888888", lw=0.8, ls=":")
    right.set_ylim(min(0.5, *(e["val_score"] for e in entries)), 1.02)
    lines = [*axes.get_lines(), right.get_lines()[0]]
    axes.legend(lines, [line.get_label() for line in lines], fontsize=7, frameon=False, loc="center right")


def open_mlflow(tracking: Tracking, config: Config, data: Path, work: Path, name: str) -> MlflowLog:
    """Open the MLflow run of this training: a new one, or the one that an earlier attempt began."""
    for variable, value in _ENVIRONMENT.items():
        os.environ.setdefault(variable, value)
    path = work / IDENTITY
    try:
        with suppressed_messages(logging.INFO):
            from mlflow import MlflowClient

            client = MlflowClient(tracking_uri=tracking.uri)
            identity = json.loads(path.read_text("utf-8")) if path.is_file() else {}
            if identity.get("place") == tracking.place:
                run = str(identity["run"])
                client.update_run(run, status="RUNNING")
            else:
                run = _new_run(client, tracking, config, data, name)
    except ModuleNotFoundError as missing:
        extras = "mlflow" if str(missing.name).startswith("mlflow") else "mlflow,server"
        raise TrackingError(f"MLflow needs more packages: pip install 'medgrape[{extras}]'.") from missing
    except Exception as error:  # each kind of store raises its own errors
        raise TrackingError(
            f"MLflow at {tracking.shown} cannot be used ({type(error).__name__}: "
            f"{without_password(first_line(error))[:200]}); start it, or train without --mlflow."
        ) from error
    write_json(path, {"place": tracking.place, "run": run})
    return MlflowLog(tracking, client, run)


@contextmanager
def reporting_end(mlflow: MlflowLog | None, out: Path) -> Iterator[None]:
    """Tell MLflow how the training ended."""
    try:
        yield
    except BaseException as error:
        if mlflow is not None:
            mlflow.end("KILLED" if isinstance(error, KeyboardInterrupt) else "FAILED")
        raise
    if mlflow is not None:
        mlflow.finish(out)


def without_password(text: str) -> str:
    """Remove user names and passwords from the addresses in a text."""
    return re.sub(r"//\S*@", "//", text)  # to the last @: passwords may contain / and @


def flattened(table: Mapping[str, Any], path: str = "") -> dict[str, str]:
    """Return settings by dotted keys as MLflow's parameters; of withheld patients only the number."""
    params: dict[str, str] = {}
    for name, value in table.items():
        key = f"{path}{name}"
        if isinstance(value, Mapping) and value:
            params |= flattened(value, f"{key}.")
        else:
            shown = len(value) if key == "exemplars.withheld" else value
            params[key] = shown if isinstance(shown, str) else json.dumps(shown)
    return params


def _new_run(client: Any, tracking: Tracking, config: Config, data: Path, name: str) -> str:  # noqa: ANN401
    from mlflow.entities import Param, RunTag

    experiment = client.get_experiment_by_name(tracking.experiment)
    number = client.create_experiment(tracking.experiment) if experiment is None else experiment.experiment_id
    run = str(client.create_run(number, run_name=name).info.run_id)
    params = [Param(key, value) for key, value in flattened(config.model_dump(mode="json")).items()]
    for batch in in_order(params, _PARAMS_PER_REQUEST):
        client.log_batch(run, params=batch)
    parts = {f"medgrape.part.{kind.replace(' ', '_')}": part for kind, part in parts_used(config).items()}
    tags = {key: " ".join(part.values()) for key, part in parts.items()} | {
        "mlflow.note.content": "Research software, not a medical device.",
        "medgrape.version": version("medgrape"),
        "medgrape.torch": version("torch"),
        "medgrape.dataset": Dataset.load(data).name,
        "medgrape.dataset_checksum": checksum(data),
    }
    client.log_batch(run, tags=[RunTag(key, value) for key, value in tags.items()])
    return run
