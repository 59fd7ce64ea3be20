"""Each finding left out and learnt again from few films."""

from pathlib import Path
from typing import Any

from medgrape.evaluation.checks import EvaluationError
from medgrape.evaluation.vocabulary import TrialPlan, leave_one_out
from medgrape.model.checkpoint import LoadedRun
from medgrape.progress import Track

FILMS = (0, 1, 5, 20)


def measure_few_shot(loaded: LoadedRun, data: Path, draws: int, track: Track) -> dict[str, Any]:
    """The paper's numbers of films; empty, with the reason, where no finding has boxes to learn from and to test on."""
    try:
        return leave_one_out(loaded, data, TrialPlan(FILMS, draws), track=track).to_json()
    except EvaluationError as error:
        return {"concepts": [], "warnings": [str(error)]}
