"""Assembles the explanation of one film from evidence, scores of training films and exemplars."""

from collections.abc import Mapping

from medgrape.explain.explanation import Explanation
from medgrape.explain.film_evidence import ConceptEvidence, DrawnBox, Exemplar
from medgrape.films.film import Film
from medgrape.geometry import FilmSize, PatchGrid
from medgrape.model.evidence import Evidence
from medgrape.model.grape import Prediction
from medgrape.runs.checkpoint import Run

EXEMPLARS = 3  # training films for each concept


def explain(
    run: Run,
    film: Film,
    evidence: Evidence,
    prediction: Prediction,
    *,
    rejected: frozenset[str] = frozenset(),
    notes: tuple[str, ...] = (),
    drawn: tuple[DrawnBox, ...] = (),
    moves: Mapping[str, Mapping[str, float]] | None = None,
) -> Explanation:
    """Return the explanation, with the strongest concept first and rejected ones last; ``notes`` become warnings."""
    moves = moves or {}
    concepts = [
        ConceptEvidence(
            concept=concept,
            score=float(evidence.mean[row].max()),
            absent_score=float(run.reference_scores.absent_peak[row]),
            present_score=float(run.reference_scores.present_peak[row]),
            mean=evidence.mean[row].double().numpy(),
            disagreement=evidence.disagreement[row].double().numpy(),
            exemplars=_exemplars(run, evidence, row),
            rejected=concept.name in rejected,
            moves=moves.get(concept.name),
        )
        for row, concept in enumerate(run.concepts)
    ]
    warnings = [
        f"No film has ever shown the model {run.concepts[name].title}; where it points is a guess."
        for name in run.metrics.get("untrained_concepts", ())
    ]
    probabilities = zip(run.classes, prediction.probabilities[0].tolist(), strict=True)
    return Explanation(
        shown=film,
        grid=evidence.grid,
        probabilities=dict(sorted(probabilities, key=lambda item: -item[1])),
        concepts=tuple(sorted(concepts, key=_rank, reverse=True)),
        attention=None if prediction.attention is None else prediction.attention[0].double().numpy(),
        concept_names=run.concepts.names[: run.model.head_concepts],
        warnings=(*film.facts.warnings, *warnings, *notes),
        drawn=drawn,
    )


def _rank(evidence: ConceptEvidence) -> tuple[bool, bool, float]:
    strength = evidence.strength if evidence.is_informative else evidence.score
    return not evidence.rejected, evidence.is_informative, strength


def _exemplars(run: Run, evidence: Evidence, row: int) -> tuple[Exemplar, ...]:
    """Return the training films nearest to the strongest prototypes that are not discarded, each film once."""
    films, exemplars = run.exemplars, dict[int, Exemplar]()
    for prototype in evidence.scores[row].argsort(descending=True, stable=True).tolist():
        film = int(films.film[row, prototype])  # -1: withheld
        if film in {-1, *exemplars} or (evidence.kept is not None and not evidence.kept[row, prototype]):
            continue
        thumbnail = films.thumbnails[film]
        grid = PatchGrid(FilmSize(thumbnail.shape[1], thumbnail.shape[0]), *films.grid)
        patch = grid.patch(*divmod(int(films.patch[row, prototype]), grid.columns))
        similarity = float(films.similarity[row, prototype])
        exemplars[film] = Exemplar(films.films[film], prototype, similarity, thumbnail, patch, film)
        if len(exemplars) == EXEMPLARS:
            break
    return tuple(exemplars.values())
