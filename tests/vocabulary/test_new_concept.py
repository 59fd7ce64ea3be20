import pytest
import torch
import torch.nn.functional as F

from medgrape.concepts import Concept, ConceptError, ConceptSet
from medgrape.geometry import Box, FilmSize
from medgrape.model.atlas import Atlas
from medgrape.vocabulary.new_concept import (
    Example,
    NewConceptError,
    all_but,
    covered,
    starting_prototypes,
    tune,
    with_concept,
)

WIDTH, PROTOTYPES = 8, 5
LUNG, CAVITY, NODULE = torch.eye(WIDTH)[0], torch.eye(WIDTH)[1], torch.eye(WIDTH)[2]
OTHERS = torch.stack([LUNG, NODULE])


def lung_with(finding, row, column, side=4):
    """A film of ordinary lung with one patch that shows a finding."""
    patches = LUNG[:, None, None].expand(WIDTH, side, side).clone()
    patches[:, row, column] = finding
    return patches


def box_at(row, column, side=4):
    inside = torch.zeros(side, side)
    inside[row, column] = 1.0
    return inside


def highest(prototypes, patches):
    mean = torch.einsum("dhw,d->hw", patches, prototypes.mean(dim=0))
    return divmod(int(mean.argmax()), mean.shape[1])


def start(anchor, examples=(), seed=0):
    return starting_prototypes(anchor, examples, OTHERS, PROTOTYPES, seed=seed)


def test_a_description_alone_gives_prototypes_close_around_its_anchor():
    placed = start(CAVITY)
    assert placed.shape == (PROTOTYPES, WIDTH)
    assert torch.allclose(placed.norm(dim=-1), torch.ones(PROTOTYPES))
    assert (placed @ CAVITY > 0.98).all()
    assert len(placed.unique(dim=0)) == PROTOTYPES


def test_the_same_seed_starts_alike_and_another_seed_does_not():
    assert torch.equal(start(CAVITY, seed=3), start(CAVITY, seed=3))
    assert not torch.equal(start(CAVITY, seed=3), start(CAVITY, seed=4))


def test_without_text_a_concept_starts_at_what_lies_in_the_box():
    placed = start(None, [Example(lung_with(CAVITY, 1, 2), box_at(1, 2))])
    assert (placed @ CAVITY > 0.98).all()


def test_without_text_and_box_a_concept_starts_at_what_looks_like_nothing_known():
    placed = start(None, [Example(lung_with(CAVITY, 1, 2), None)])
    assert (placed @ CAVITY > (placed @ OTHERS.T).amax(dim=1)).all()


def test_no_film_leaves_the_start_as_it_is():
    placed = start(CAVITY)
    assert torch.equal(tune(placed, [], OTHERS, seed=0), placed)


@pytest.mark.parametrize("boxed", [True, False])
def test_a_tuned_concept_points_at_the_finding_on_another_film(boxed):
    anchor = F.normalize(CAVITY + 0.8 * LUNG, dim=-1)  # a description that fits ordinary lung nearly as well
    shown = Example(lung_with(CAVITY, 1, 2), box_at(1, 2) if boxed else None)
    tuned = tune(start(anchor), [shown], OTHERS, seed=0)
    assert tuned.shape == (PROTOTYPES, WIDTH)
    assert torch.allclose(tuned.norm(dim=-1), torch.ones(PROTOTYPES), atol=1e-5)
    assert highest(tuned, lung_with(CAVITY, 3, 0)) == (3, 0)


def test_what_a_box_shows_counts_for_more_than_a_description_that_means_another_thing():
    film = lung_with(CAVITY, 1, 2)
    film[:, 0, 0] = NODULE
    tuned = tune(start(NODULE), [Example(film, box_at(1, 2))], OTHERS, seed=0)
    assert highest(tuned, film) == (1, 2)


def test_tuning_twice_with_one_seed_gives_the_same_prototypes():
    shown = [Example(lung_with(CAVITY, 1, 2), box_at(1, 2))]
    assert torch.equal(*(tune(start(CAVITY), shown, OTHERS, seed=7) for _ in range(2)))


def test_other_prototypes_are_those_in_use_and_ordinary_tissue():
    atlas = Atlas(3, 4, WIDTH, background=True)
    assert len(all_but(atlas)) == 4 * 4
    assert len(all_but(atlas, 1)) == 3 * 4
    assert not (all_but(atlas, 1) == atlas.prototypes[1, 0]).all(dim=1).any()
    kept = torch.ones(3, 4, dtype=torch.bool)
    kept[0, :3] = False
    atlas.curated(kept, torch.zeros(3, 4))
    assert len(all_but(atlas)) == 1 + 4 + 4 + 4
    assert len(all_but(Atlas(1, 4, WIDTH), 0)) == 0


def test_two_boxes_on_one_film_both_count_and_never_add_up_to_more_than_a_patch():
    found = covered([Box(0, 0, 50, 50), Box(0, 0, 25, 50), Box(50, 50, 100, 75)], FilmSize(100, 100), (2, 2))
    assert found.tolist() == [[1.0, 0.0], [0.0, 0.5]]


KNOWN = ConceptSet((Concept("effusion", "Pleural effusion", "Fluid.", aliases=("Hydrothorax",)),))


@pytest.mark.parametrize(
    ("name", "title"),
    [("effusion", "Fluid"), ("pleural_effusion", "Fluid"), ("hydrothorax", "Fluid"), ("fluid", "Pleural Effusion")],
)
def test_a_concept_that_the_model_has_under_any_name_is_not_added_again(name, title):
    with pytest.raises(NewConceptError, match=r"has '.*' already, as concept 'effusion'"):
        with_concept(KNOWN, Concept(name, title, "Fluid at the base."))


@pytest.mark.parametrize(("name", "description"), [("Big Cavity", "A hole."), ("", "A hole."), ("cavity", "  ")])
def test_a_badly_named_or_undescribed_concept_is_refused(name, description):
    with pytest.raises(ConceptError):
        with_concept(KNOWN, Concept(name, "Cavity", description))
