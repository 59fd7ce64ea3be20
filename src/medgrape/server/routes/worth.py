"""What a model is worth: measured here on validation films, or found beside its run."""

from medgrape.server.desk import Desk, Who, problems, router
from medgrape.server.evaluations import evaluation_of
from medgrape.server.routes.params import ModelVersion
from medgrape.server.schemas.evaluations import EvaluationTold
from medgrape.server.schemas.jobs import JobTold
from medgrape.server.schemas.worth import WorthTold
from medgrape.server.security.roles import Role
from medgrape.server.telling import job_told
from medgrape.server.worth import kept_worth, measure, refuse_unfit

routes, curating = router("models", Role.READER), router("models", Role.CURATOR)


@routes.get("/models/{model}/worth")
def get_worth(model: ModelVersion, desk: Desk) -> WorthTold:
    """Tell what was found out on the server's data set: what prototypes do, and what the change to this model did."""
    return kept_worth(desk.room, model)


@curating.post("/models/{model}/worth", status_code=202, responses=problems(409))
def measure_worth(model: ModelVersion, desk: Desk, who: Who) -> JobTold:
    """Measure a model, and the one that it was made from, on the server's data set. Follow the job.

    Prototypes are watched on training films, classes are compared on validation films. Test films are not looked at.
    """
    refuse_unfit(desk.room, model)
    return job_told(desk.jobs.start(who, "model.worth", lambda track: measure(desk.room, who, model, track)))


@routes.get("/models/{model}/evaluation")
def get_evaluation(model: ModelVersion, desk: Desk) -> EvaluationTold:
    """Tell what medgrape evaluate and medgrape audit found out about exactly this model, where it lies beside it."""
    return evaluation_of(desk.room, model)
