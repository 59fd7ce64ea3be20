"""Save a run whose prototypes or concepts changed, with its head refitted if wanted (``atlas``, ``concept``)."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from medgrape.cli.console import note, table, track, watch
from medgrape.cli.options import outside_runs
from medgrape.errors import UserError
from medgrape.files import check_new_folder

if TYPE_CHECKING:
    from medgrape.reader import Reader
    from medgrape.training.refit import RefitFigures

RefitFlag = Annotated[bool, Option("--refit", help="Fit the head again after the change; needs --data.")]
RefitData = Annotated[Path | None, Option(help="Prepared data set to fit the head on, for --refit.")]


@dataclass(frozen=True)
class ChangedRun:
    """A saved run, the sentences that describe its changes, and the figures of the refit, if any."""

    folder: Path
    reader: "Reader"
    changes: list[str]
    figures: "RefitFigures | None"

    def to_json(self) -> dict[str, Any]:
        """Return the folder, the changes and the figures of the refit."""
        return {"run": self.folder, "changes": self.changes, "refit": self.figures}

    def print(self) -> None:
        """Print the changes, the figures of the refit and the folder."""
        for change in self.changes:
            note(change)
        if self.figures is not None:
            _print_refit(self.figures)
        note(f"run: {self.folder}")


def check_refit_options(refit: bool, data: Path | None) -> None:
    """Raise an error if only one of ``--refit`` and ``--data`` is given."""
    if refit != (data is not None):
        raise UserError("--refit and --data DIR go together: the head is fitted again on that data set.")


def check_run_folder(out: Path) -> None:
    """Raise an error, before any long work, if no run can be written to ``out``."""
    check_new_folder(out)
    outside_runs(out)


def save_changed(changed: "Reader", original: "Reader", out: Path, data: Path | None) -> ChangedRun:
    """Save the changed reader as a run; with ``data``, refit its head on that data set before."""
    figures = None
    if data is not None:
        from medgrape.training.refit import refit

        fitted = refit(changed, data, original=original, track=track, watch=watch)
        changed, figures = fitted.reader, fitted.figures
    saved = changed.save(out)
    new_changes = saved.loaded.run.changes[len(original.loaded.run.changes) :]
    return ChangedRun(out, saved, [change.what for change in new_changes], figures)


def _print_refit(figures: "RefitFigures") -> None:
    rows = (
        ("before", figures.before), ("changed, old head", figures.unfitted),
        ("changed, head fitted again", figures.after), (f"always {figures.trivial_answer!r}", figures.trivial),
    )  # fmt: skip
    table(
        f"{figures.films:,} validation films of {figures.data_set}",
        ("run", "macro-F1", "accuracy"),
        [(name, metrics.macro_f1, metrics.accuracy) for name, metrics in rows],
    )
    note(f"The predicted class of {figures.changed:,} of these films changed.")
