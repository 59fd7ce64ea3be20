import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medgrape.concepts import Concept, ConceptSet
from medgrape.datasets.statistics import co_occurrence_of

THREE = ConceptSet(tuple(Concept.named(name) for name in ("cavity", "effusion", "scar")))


def slow(labels):
    """The paper's equation, a pair of concepts at a time."""
    count = len(labels[0])
    matrix = np.zeros((count, count))
    for k in range(count):
        for j in range(count):
            both = sum(1 for row in labels if row[k] == 1 and row[j] == 1)
            given_j = sum(1 for row in labels if row[j] == 1)
            matrix[k, j] = both / max(given_j, 1)
    return matrix


@given(st.lists(st.tuples(*[st.integers(0, 1)] * 3), min_size=1, max_size=30))
def test_co_occurrence_is_the_papers_conditional_probability(rows):
    labels = np.array(rows, float)
    assert co_occurrence_of(labels, THREE).probability == pytest.approx(slow(labels))


def test_a_concept_listens_to_what_it_often_comes_with_and_to_itself():
    # Effusion always comes with a cavity; of four cavities only one comes with effusion; scars come alone.
    labels = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 0], [1, 0, 0], [0, 0, 0]], float)
    graph = co_occurrence_of(labels, THREE)
    assert graph.probability[0, 1] == 1.0
    assert graph.probability[1, 0] == 0.25
    assert graph.edges(0.3).tolist() == [[True, True, False], [False, True, False], [False, False, True]]
    assert graph.edges(0.2).sum() == 5


def test_films_on_which_a_finding_is_not_known_do_not_count_against_it():
    labels = np.array([[1, 1, 0], [np.nan, 1, 0], [np.nan, 1, 0]])
    assert co_occurrence_of(labels, THREE).probability[0, 1] == 1.0
