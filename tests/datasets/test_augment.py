import torch

from medgrape.datasets.augment import GAMMA, SHIFT, TURN, ZOOM, RandomViews, augmented, transformed

SEEDS = [(0, 1, 7), (0, 2, 7), (0, 1, 8)]


def test_the_same_film_and_number_give_the_same_view_in_any_company():
    films = torch.rand(3, 1, 32, 32)
    together = augmented(films, RandomViews(SEEDS))
    alone = [augmented(film[None], RandomViews([seed])) for film, seed in zip(films, SEEDS, strict=True)]
    torch.testing.assert_close(together, torch.cat(alone))
    moves = RandomViews(SEEDS).transforms()
    assert not torch.allclose(moves[0], moves[1])


def test_a_view_keeps_the_greys_between_black_and_white():
    films = torch.rand(3, 1, 32, 32)
    seen = augmented(films, RandomViews(SEEDS))
    assert seen.min() >= 0
    assert seen.max() <= 1


def test_a_lesion_and_its_box_move_to_the_same_place():
    film, box = torch.zeros(1, 1, 64, 64), torch.zeros(1, 3, 64, 64)
    film[0, 0, 20:26, 40:46] = 1.0
    box[0, 1, 20:26, 40:46] = 1.0
    move = RandomViews([(3, 1, 4)]).transforms()
    lesion, drawn = transformed(film, move, "border")[0, 0], transformed(box, move, "zeros")[0]
    torch.testing.assert_close(lesion, drawn[1])
    assert not torch.allclose(lesion, film[0, 0])
    assert (drawn[[0, 2]] == 0).all()


def test_no_view_is_a_mirror_image_or_beyond_the_bounds():
    """A determinant below zero would put the heart on the right."""
    for seed in range(200):
        move = RandomViews([(seed,)]).transforms()[0]
        scale = torch.det(move[:, :2]).sqrt()
        assert 1 - ZOOM <= scale <= 1 + ZOOM
        assert move[:, 2].abs().max() <= 2 * SHIFT
        assert torch.atan2(move[1, 0], move[0, 0]).abs() <= TURN + 1e-6
    assert 0 < GAMMA < 0.5


def test_asked_for_mirror_images_come_half_of_the_time_and_differ_from_the_view_in_nothing_else():
    seeds = [(seed,) for seed in range(200)]
    plain, mirrored = RandomViews(seeds).transforms(), RandomViews(seeds, mirror=True).transforms()
    turned = torch.det(mirrored[:, :, :2]) < 0
    assert 70 < int(turned.sum()) < 130
    film = torch.rand(1, 1, 32, 32)
    first = int(turned.nonzero()[0])
    torch.testing.assert_close(
        transformed(film, mirrored[[first]], "border"),
        transformed(film, plain[[first]], "border").flip(-1),
        atol=1e-5,
        rtol=0,
    )
    torch.testing.assert_close(mirrored[~turned], plain[~turned])
