"""What was done to a run after its training: what publishing takes out alters no answer, anything else may."""

from medgrape.model.checkpoint import Run

TAKEN_OUT = "Pictures and names of training films were taken out to publish it."
UNNAMED = "Names of films or patients that are never shown were taken out of its settings to publish it."


def changed(run: Run) -> bool:
    """Whether what its training found may be of another model than this one."""
    return any(change.what not in (TAKEN_OUT, UNNAMED) for change in run.changes)
