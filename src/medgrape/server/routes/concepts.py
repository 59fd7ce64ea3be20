"""Findings that are learnt after training."""

from medgrape.geometry import Box
from medgrape.server.desk import Desk, Who, router
from medgrape.server.schemas.jobs import JobTold
from medgrape.server.schemas.models import TeachConcept
from medgrape.server.security.roles import Role
from medgrape.server.teaching import Lesson, prepare, teach
from medgrape.server.telling import job_told

routes = router("concepts", Role.CURATOR)


@routes.post("/concepts", status_code=202)
def teach_concept(asked: TeachConcept, desk: Desk, who: Who) -> JobTold:
    """Teach a model one more finding, from a sentence, from films, or both. Follow the job; its result names the model.

    The model that it starts from stays as it is. Open a film with the new one to see the new map; put it to use to
    keep it, or remove it.
    """
    examples = tuple(
        (one.film, None if one.box is None else Box(one.box.x1, one.box.y1, one.box.x2, one.box.y2))
        for one in asked.examples
    )
    lesson = Lesson(asked.name, asked.description, asked.title, examples, asked.seed)
    prepared = prepare(desk.room, lesson, asked.model)
    return job_told(desk.jobs.start(who, "concept.teach", lambda track: teach(desk.room, who, prepared, track)))
