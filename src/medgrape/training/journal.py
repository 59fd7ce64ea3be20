"""The story of a training, epoch by epoch: a JSONL file, TensorBoard's events and a plot of the curves."""

import json
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from medgrape.concepts import colour
from medgrape.files import whole_file

Entry = dict[str, Any]


@runtime_checkable
class Listener(Protocol):
    """Somebody else who is told what the journal is told."""

    def begin(self, entries: list[Entry]) -> None:
        """What earlier attempts have reached."""
        ...

    def add(self, entry: Entry) -> None:
        """One more epoch."""
        ...


def figures(entry: Entry) -> dict[str, float]:
    """The figures of an epoch, by stage and name: the same ones for whoever shows them."""
    return {f"{entry['stage']}/{name}": value for name, value in entry.items() if isinstance(value, float)}


@dataclass
class Journal:
    """Every epoch once, also after a training that was broken off: what is in the checkpoints is what counts."""

    folder: Path
    entries: list[Entry] = field(default_factory=list)
    listener: Listener | None = None
    _events: Any = None

    def begin(self, entries: list[Entry]) -> None:
        """Start with what earlier attempts have reached."""
        from tensorboardX.proto.event_pb2 import Event  # slow to import, and only training needs it
        from tensorboardX.record_writer import RecordWriter

        events = self.folder / "tensorboard"
        shutil.rmtree(events, ignore_errors=True)
        events.mkdir(parents=True)
        self._events = RecordWriter(str(events / "events.out.tfevents.medgrape"))  # no machine's name in it
        self._events.write(Event(wall_time=time.time(), file_version="brain.Event:2").SerializeToString())
        for entry in entries:
            self._event(entry)
        self.entries = list(entries)
        self._write()
        if self.listener is not None:
            self.listener.begin(list(entries))

    def add(self, entry: Entry) -> None:
        """One more epoch."""
        self.entries.append(entry)
        self._event(entry)
        self._write()
        if self.listener is not None:
            self.listener.add(entry)

    def close(self) -> None:
        """Nothing more will be added."""
        if self._events is not None:
            self._events.close()

    def _write(self) -> None:
        with whole_file(self.folder / "log.jsonl") as draft:
            draft.write_text("".join(json.dumps(line) + "\n" for line in self.entries), "utf-8")

    def _event(self, entry: Entry) -> None:
        from tensorboardX.proto.event_pb2 import Event
        from tensorboardX.summary import scalar

        for name, value in figures(entry).items():
            event = Event(wall_time=time.time(), step=entry["epoch"], summary=scalar(name, value))
            self._events.write(event.SerializeToString())
        self._events.flush()

    def draw(self) -> None:
        """Loss and validation figure of every stage, side by side."""
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
