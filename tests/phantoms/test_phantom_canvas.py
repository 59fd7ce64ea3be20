import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from medgrape.phantoms.canvas import Canvas, Pose, ellipse, ribbon, smooth, smooth_closed


@given(x=st.floats(0.3, 0.7), y=st.floats(0.3, 0.7), radius=st.floats(0.05, 0.2))
@settings(max_examples=25, deadline=None)
def test_a_filled_disc_covers_its_area_at_its_place(x, y, radius):
    layer = Canvas(128).fill(ellipse((x, y), radius, radius, count=60))
    rows, columns = np.mgrid[:128, :128]

    assert abs(layer.sum() / 128**2 - np.pi * radius**2) < 0.02
    assert abs((layer * columns).sum() / layer.sum() + 0.5 - 128 * x) < 1
    assert abs((layer * rows).sum() / layer.sum() + 0.5 - 128 * y) < 1


@given(tilt=st.floats(-0.2, 0.2), zoom=st.floats(0.9, 1.1))
@settings(max_examples=25, deadline=None)
def test_a_pose_turns_about_the_middle_of_the_film_and_keeps_shapes(tilt, zoom):
    pose = Pose(tilt=tilt, zoom=zoom)
    points = np.array([(0.5, 0.5), (0.6, 0.5), (0.5, 0.8)])

    moved = pose.apply(points)

    np.testing.assert_allclose(moved[0], (0.5, 0.5))
    np.testing.assert_allclose(np.linalg.norm(moved[1:] - 0.5, axis=1), zoom * np.array([0.1, 0.3]))


def test_a_smooth_curve_passes_through_its_points():
    points = [(0.1, 0.2), (0.4, 0.3), (0.5, 0.7), (0.9, 0.6)]

    for curve in (smooth(points), smooth_closed(points)):
        for point in points:
            assert np.linalg.norm(curve - point, axis=1).min() < 1e-9


def test_a_ribbon_is_as_wide_as_asked():
    path = np.stack([np.linspace(0, 1, 20), np.full(20, 0.5)], axis=1)

    outline = ribbon(path, 0.1)

    np.testing.assert_allclose(np.ptp(outline[:, 1]), 0.1)


def test_softening_keeps_the_amount_of_shadow():
    canvas = Canvas(128)
    disc = canvas.fill(ellipse((0.5, 0.5), 0.2, 0.2))

    for sigma in (0.005, 0.02, 0.06):
        assert abs(canvas.soften(disc, sigma).sum() / disc.sum() - 1) < 0.02
