"""From a model's evidence to an explanation: ranked, compared with training films, with the films behind it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from medgrape.explain.explanation import ConceptEvidence, DrawnBox, Exemplar, Explanation
from medgrape.films.film import Film
from medgrape.geometry import FilmSize, PatchGrid
from medgrape.model.evidence import Evidence
from medgrape.model.grape import Prediction
from medgrape.runs.checkpoint import Run
from medgrape.runs.exemplars import ExemplarFilms

EXEMPLARS = 3
"""Films for each concept."""


def explain(
    run: Run,
    film: Film,
    evidence: Evidence,
    judged: Prediction,
    *,
    rejected: frozenset[str] = frozenset(),
    notes: tuple[str, ...] = (),
    drawn: tuple[DrawnBox, ...] = (),
    moves: Mapping[str, Mapping[str, float]] | None = None,
) -> Explanation:
    """What was found, the concept that stands out most first; ``notes`` tell what a person made of it."""
    moved = moves or {}
    found = [
        replace(one, rejected=one.concept.name in rejected, moves=moved.get(one.concept.name))
        for one in _concepts(run, evidence)
    ]
    ranked = sorted(found, key=_rank, reverse=True)
    shares = {name: float(share) for name, share in zip(run.classes, judged.probabilities[0], strict=True)}
    return Explanation(
        shown=film,
        grid=evidence.grid,
        probabilities=dict(sorted(shares.items(), key=lambda one: -one[1])),
        concepts=tuple(ranked),
        attention=None if judged.attention is None else judged.attention[0].double().numpy(),
        concept_names=run.concepts.names[: run.model.judged],
        warnings=(*film.facts.warnings, *_untrained(run), *notes),
        drawn=drawn,
    )


def _rank(found: ConceptEvidence) -> tuple[bool, bool, float]:
    """What stands out comes first, what a person rejected last."""
    return not found.rejected, found.is_informative, found.strength if found.is_informative else found.score


def _concepts(run: Run, evidence: Evidence) -> Iterator[ConceptEvidence]:
    """Every concept in the model's order; its maps are worked out once for all of them."""
    means, spreads, scores = evidence.mean, evidence.disagreement, evidence.scores
    for row, concept in enumerate(run.concepts):
        answers = scores[row].argsort(descending=True, stable=True).tolist()
        if evidence.kept is not None:
            kept = evidence.kept[row].tolist()
            answers = [prototype for prototype in answers if kept[prototype]]
        yield ConceptEvidence(
            concept=concept,
            score=float(means[row].max()),
            absent_score=float(run.usual.absent_peak[row]),
            present_score=float(run.usual.present_peak[row]),
            mean=means[row].double().numpy(),
            disagreement=spreads[row].double().numpy(),
            exemplars=tuple(_exemplars(run.exemplars, row, answers)),
        )


def _exemplars(films: ExemplarFilms, row: int, prototypes: Sequence[int]) -> list[Exemplar]:
    """Films nearest to the prototypes, which come strongest first and none of them discarded; each film once."""
    chosen: list[Exemplar] = []
    shown = {-1}  # stands for a film that is withheld
    for prototype in prototypes:
        film = int(films.film[row, prototype])
        if film in shown:
            continue
        shown.add(film)
        chosen.append(_exemplar(films, row, prototype))
        if len(chosen) == EXEMPLARS:
            break
    return chosen


def _exemplar(films: ExemplarFilms, row: int, prototype: int) -> Exemplar:
    film = int(films.film[row, prototype])
    picture = films.thumbnails[film]
    grid = PatchGrid(FilmSize(picture.shape[1], picture.shape[0]), *films.grid)
    down, across = divmod(int(films.patch[row, prototype]), grid.columns)
    similarity = float(films.similarity[row, prototype])
    return Exemplar(films.films[film], prototype, similarity, picture, grid.patch(down, across), film)


def _untrained(run: Run) -> list[str]:
    names = run.metrics.get("untrained_concepts", [])
    return [
        f"No film has ever shown the model {run.concepts[name].title}; where it points is a guess." for name in names
    ]
