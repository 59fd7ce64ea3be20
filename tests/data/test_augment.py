import torch

from medgrape.data.augment import GAMMA, SHIFT, TURN, ZOOM, moved, moves, view

SEEDS = [(0, 1, 7), (0, 2, 7), (0, 1, 8)]


def test_the_same_film_and_number_give_the_same_view_in_any_company():
    films = torch.rand(3, 1, 32, 32)
    together = view(films, moves(SEEDS), SEEDS)
    alone = [view(film[None], moves([seed]), [seed]) for film, seed in zip(films, SEEDS, strict=True)]
    torch.testing.assert_close(together, torch.cat(alone))
    assert not torch.allclose(moves(SEEDS)[0], moves(SEEDS)[1])


def test_a_view_keeps_the_greys_between_black_and_white():
    films = torch.rand(3, 1, 32, 32)
    seen = view(films, moves(SEEDS), SEEDS)
    assert seen.min() >= 0
    assert seen.max() <= 1


def test_a_lesion_and_its_box_move_to_the_same_place():
    film, box = torch.zeros(1, 1, 64, 64), torch.zeros(1, 3, 64, 64)
    film[0, 0, 20:26, 40:46] = 1.0
    box[0, 1, 20:26, 40:46] = 1.0
    move = moves([(3, 1, 4)])
    lesion, drawn = moved(film, move, "border")[0, 0], moved(box, move, "zeros")[0]
    torch.testing.assert_close(lesion, drawn[1])
    assert not torch.allclose(lesion, film[0, 0])
    assert (drawn[[0, 2]] == 0).all()


def test_no_view_is_a_mirror_image_or_beyond_the_bounds():
    """A determinant below zero would put the heart on the right."""
    for seed in range(200):
        move = moves([(seed,)])[0]
        scale = torch.det(move[:, :2]).sqrt()
        assert 1 - ZOOM <= scale <= 1 + ZOOM
        assert move[:, 2].abs().max() <= 2 * SHIFT
        assert torch.atan2(move[1, 0], move[0, 0]).abs() <= TURN + 1e-6
    assert 0 < GAMMA < 0.5
