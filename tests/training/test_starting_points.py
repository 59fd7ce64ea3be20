import torch
import torch.nn.functional as F

from medgrape.training.prototype_stage import starting_points


def directions(count, width=8, seed=0):
    return F.normalize(torch.randn(count, width, generator=torch.Generator().manual_seed(seed)), dim=-1)


def test_enough_films_are_clustered_and_the_same_seed_gives_the_same_start():
    films, groups = directions(60), torch.arange(60) % 2
    first, again = (starting_points(films, groups, 2, 5, None, seed=3) for _ in range(2))
    assert torch.equal(first, again)
    torch.testing.assert_close(first.norm(dim=-1), torch.ones(2, 5))
    other = starting_points(films, groups, 2, 5, None, seed=4)
    assert not torch.equal(first, other)


def test_too_few_films_are_repeated_with_a_little_noise():
    films = directions(3)
    start = starting_points(films, torch.zeros(3, dtype=torch.long), 1, 7, None, seed=0)[0]
    torch.testing.assert_close(start[:3], films)
    assert ((start[3:6] * films).sum(dim=-1) > 0.99).all()
    assert len({tuple(row.tolist()) for row in start}) == 7


def test_a_concept_without_films_starts_at_its_text_anchor():
    anchors = directions(2, seed=5)
    start = starting_points(directions(9), torch.zeros(9, dtype=torch.long), 2, 4, anchors, seed=0)
    assert ((start[1] @ anchors[1]) > 0.98).all()


def test_without_films_and_text_a_concept_starts_at_random():
    start = starting_points(directions(9), torch.zeros(9, dtype=torch.long), 2, 4, None, seed=0)
    torch.testing.assert_close(start[1].norm(dim=-1), torch.ones(4))
