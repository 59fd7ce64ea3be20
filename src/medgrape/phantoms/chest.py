"""The healthy chest of one exam as layers: soft tissue, heart, vessels, air and bones, which findings then modify."""

from dataclasses import dataclass

import numpy as np

from medgrape.phantoms.anatomy import LEFT, RIGHT, SIDES, Anatomy, Exam
from medgrape.phantoms.bones import body_contour, diaphragm, draw_cartilages, draw_skeleton, pleural_cavity
from medgrape.phantoms.canvas import Canvas, Layer, Pair, Points, blob, ellipse, ribbon, smooth, smooth_closed

BRANCH_POINTS = (5, 4, 4, 3, 3, 3)  # points along a branch of each generation
TRUNKS = 8  # vessels that leave each hilum
CALIBRE, TAPER = 0.0092, 0.70  # of a trunk, and from one generation to the next
# How much each tissue adds to the trunk's own thickness of 1
AIR, HEART, BONE = 0.58, 0.02, 0.150
VESSEL, HILUM, BREAST, GAS, AIRWAY, CALCIUM = 0.120, 0.15, 0.15, 0.24, 0.085, 0.12
BEHIND_HEART = 0.20  # share of the lung's air that shows through


def heart_outline(anatomy: Anatomy) -> Points:
    """Return the cardiac silhouette: right atrium, left ventricle, left auricle and pulmonary trunk."""
    middle = anatomy.front()
    total = anatomy.heart_width * 2 * anatomy.half_width
    right, left = total * 0.33, total * 0.67
    floor = (anatomy.dome[0] + anatomy.dome[1]) / 2
    tall = 0.275 - 0.035 * anatomy.heart_tilt + 0.25 * max(0.0, total - 0.32)
    top = floor - tall

    def at(across: float, down: float) -> Pair:
        return middle + across, top + down * (tall + 0.045)

    tilt = anatomy.heart_tilt
    return smooth_closed(
        [
            at(-0.045, 0.02), at(-right * 0.80, 0.24), at(-right * 1.00, 0.45), at(-right * 0.99, 0.62),
            at(-right * 0.80, 0.82), at(-right * 0.55, 0.97), at(left * 0.45, 1.02), at(left * 0.84, 0.99),
            at(left * 1.00, 0.87 - 0.03 * tilt), at(left * 0.95, 0.70 - 0.05 * tilt),
            at(left * 0.83, 0.49 - 0.04 * tilt), at(left * 0.61, 0.29), at(left * 0.44, 0.12), at(left * 0.30, 0.0),
        ]
    )  # fmt: skip


def great_vessels(anatomy: Anatomy) -> tuple[Points, Points]:
    """Return the band above the heart from caval vein to left subclavian artery, and the aortic knob."""
    front, floor = anatomy.front(), (anatomy.dome[0] + anatomy.dome[1]) / 2
    top, knob = anatomy.apex, anatomy.knob
    bottom = floor - 0.06
    arch = top + 0.205
    right: list[Pair] = [
        (-0.095, top - 0.04), (-0.062, top + 0.07), (-0.058, arch), (-0.064, arch + 0.1), (-0.06, bottom),
    ]  # fmt: skip
    left: list[Pair] = [
        (0.055, bottom), (0.070, arch + 0.12), (0.056, arch + 0.055), (0.050, arch - 0.03), (0.056, top + 0.07),
        (0.095, top - 0.04),
    ]  # fmt: skip
    band = smooth_closed([(front + x, y) for x, y in right[::-1]] + [(front + x, y) for x, y in left[::-1]])
    return band, ellipse((front + 0.036 + 0.25 * knob, arch), knob * 1.05, knob * 1.2)


def draw_airways(canvas: Canvas, anatomy: Anatomy) -> Layer:
    """Draw trachea and main bronchi."""
    carina = (anatomy.front() + 0.004, anatomy.apex + 0.235)
    trachea = smooth(
        [(0.5, -0.02), (0.5 + 0.01 * anatomy.turn, anatomy.apex), (carina[0] - 0.004, carina[1] - 0.06), carina]
    )
    right = smooth([carina, (carina[0] - 0.030, carina[1] + 0.035), (carina[0] - 0.052, carina[1] + 0.075)])
    left = smooth([carina, (carina[0] + 0.040, carina[1] + 0.035), (carina[0] + 0.075, carina[1] + 0.055)])
    width = 0.031 if not anatomy.female else 0.027
    tubes = [ribbon(trachea, width), ribbon(right, width * 0.72), ribbon(left, width * 0.62)]
    return canvas.fill(*tubes, blur=0.003)


def hilum_of(anatomy: Anatomy, side: int) -> Pair:
    """Return the centre of one hilum; the left one is higher."""
    lift = 0.012 if side == LEFT else 0.0
    out = 0.073 if side == RIGHT else 0.080
    return anatomy.front() + side * out, anatomy.apex + 0.285 - lift


def draw_hila(canvas: Canvas, anatomy: Anatomy, random: np.random.Generator) -> Layer:
    """Draw the pulmonary arteries where they enter the lungs: overlapping lobulated shadows."""
    outlines = []
    for side in SIDES:
        x, y = hilum_of(anatomy, side)
        outlines += [
            blob(random, (x, y), 0.020, 0.034, 0.25),
            blob(random, (x + side * 0.014, y + 0.045), 0.013, 0.042, 0.2),
            blob(random, (x + side * 0.012, y - 0.035), 0.012, 0.022, 0.25),
        ]
    return canvas.fill(*outlines, blur=0.0075)


def draw_vessels(canvas: Canvas, anatomy: Anatomy, random: np.random.Generator) -> Layer:
    """Draw the vessels of both lungs, thin ones first: branches that grow outwards from the hila and split in two."""
    count = TRUNKS * len(SIDES)
    outwards = np.repeat(np.array(SIDES, np.float64), TRUNKS)
    # a direction of 0 is straight outwards
    direction = np.tile(np.linspace(-1.30, 1.65, TRUNKS), len(SIDES)) + random.normal(0, 0.07, count)
    hila = np.repeat(np.array([hilum_of(anatomy, side) for side in SIDES]), TRUNKS, axis=0)
    along = 0.022 * direction + random.normal(0, 0.008, count)
    starts = hila + np.stack([outwards * random.uniform(-0.005, 0.012, count), along], axis=1)
    length = random.uniform(0.055, 0.085, count) * np.where(direction > 0.9, 1.3, 1.0)
    groups = []
    for generation, points in enumerate(BRANCH_POINTS):
        bend = random.normal(0, 0.42, len(starts))[:, None]
        angle = direction[:, None] + bend * np.linspace(0, 1, points)
        step = length[:, None] / (points - 1)
        moves = np.stack([outwards[:, None] * np.cos(angle) * step, np.sin(angle) * step], axis=2)
        moves[:, 0] = 0
        branches = starts[:, None] + np.cumsum(moves, axis=1)
        groups.append((branches, CALIBRE * TAPER**generation * anatomy.vascularity, 1.0))
        # of the two children of each branch, one goes nearly straight on and one turns away
        turn = random.choice([-1.0, 1.0], len(starts))
        straight = direction - turn * random.uniform(0.05, 0.28, len(starts))
        aside = direction + turn * random.uniform(0.30, 0.75, len(starts))
        shorter = length * random.uniform(0.70, 0.95, len(starts))
        starts, outwards = np.concatenate([branches[:, -1]] * 2), np.concatenate([outwards] * 2)
        direction, length = np.concatenate([straight, aside]), np.concatenate([shorter, shorter * 0.8])
    return canvas.graded_strokes(groups[::-1], blur=0.0022)


def draw_body(canvas: Canvas, anatomy: Anatomy) -> Layer:
    """Return the thickness of trunk, neck, shoulders and arms; 1 is the centre of the trunk."""
    trunk = canvas.fill(body_contour(anatomy))
    inner = canvas.soften(trunk, 0.045)
    rows = (np.arange(canvas.size, dtype=np.float32) + 0.5) / canvas.size
    lengthwise = np.interp(rows, [0, 0.10, 0.25, 0.6, 1.0], [0.50, 0.60, 0.74, 0.88, 1.0]).astype(np.float32)
    thickness = trunk * (0.30 + 0.70 * inner * inner) * lengthwise[:, None]
    arms = canvas.fill(*(_arm(anatomy, side) for side in SIDES))
    round_off = canvas.soften(arms, 0.030)
    limb = arms * (0.10 + 0.38 * round_off * round_off)
    return np.asarray(np.maximum(thickness, limb) + 0.35 * np.minimum(thickness, limb))


def _arm(anatomy: Anatomy, side: int) -> np.ndarray:
    """The outline of an arm: raised sideways in front of the detector, or beside a patient in bed."""
    top = anatomy.shoulder
    flank = anatomy.half_width + 0.034 + 0.075 * anatomy.habitus
    if anatomy.ap:
        half: list[Pair] = [
            (0.36, top + 0.02), (0.44, top + 0.03), (0.505, top + 0.10), (0.56, 0.40), (0.60, 1.05),
            (flank + 0.055, 1.05), (flank + 0.035, 0.60), (0.40, 0.36),
        ]  # fmt: skip
    else:
        half = [
            (0.36, top + 0.02), (0.43, top + 0.025), (0.50, top + 0.08), (0.60, 0.26), (0.68, 0.40), (0.60, 0.52),
            (0.47, 0.40), (0.39, 0.34),
        ]  # fmt: skip
    return smooth_closed([(0.5 + side * x, y) for x, y in half])


def draw_breasts(canvas: Canvas, anatomy: Anatomy) -> Layer:
    """Draw shadows over the lower lungs that end in a soft lower fold."""
    if anatomy.breast == 0:
        return canvas.blank()
    size = 0.085 + 0.085 * anatomy.breast
    low = 0.60 + 0.06 * anatomy.breast
    away, droop = anatomy.half_width * 0.70 + 0.02 * anatomy.breast, 0.012 * anatomy.turn
    centres = [(side, (0.5 + side * away, low + side * droop)) for side in SIDES]
    outlines = [ellipse(centre, size * 1.05, size * 1.1, side * 0.25) for side, centre in centres]
    shadow = canvas.fill(*outlines, blur=0.007)
    return np.asarray(shadow * canvas.soften(shadow, 0.05))


def draw_gas(canvas: Canvas, anatomy: Anatomy, random: np.random.Generator) -> Layer:
    """Draw the stomach bubble under the left dome, flat below when upright, and gas in the colon."""
    dome = anatomy.dome_of(LEFT)
    wide = 0.025 + 0.058 * random.uniform(0, 1)
    high = wide * random.uniform(0.6, 0.9)
    centre = (0.5 + anatomy.half_width * random.uniform(0.36, 0.52), dome + 0.016 + high)
    bubble = blob(random, centre, wide, high, 0.10)
    if anatomy.upright:
        bubble[:, 1] = np.minimum(bubble[:, 1], centre[1] + random.uniform(0.2, 0.7) * high)
    start = np.array([0.5 + random.choice([-0.8, 0.75]) * anatomy.half_width, dome + 0.11])
    lobes = start + np.cumsum(random.normal(0, 0.024, (int(random.integers(0, 6)), 2)), axis=0)
    colon = [blob(random, (x, y), 0.024, 0.020, 0.15) for x, y in lobes.tolist()]
    return canvas.fill(bubble, *colon, blur=0.0045)


@dataclass
class Chest:
    """Layers of one film while it is being drawn.

    ``air`` and ``vessels`` belong to the lungs and are removed where they are displaced; ``dense`` is everything that
    adds to the shadow; ``field`` is the visible lung, 0 to 1.
    """

    canvas: Canvas
    anatomy: Anatomy
    field: Layer
    cavities: dict[int, Layer]
    heart: Layer
    air: Layer
    vessels: Layer
    tissue: Layer
    dense: Layer
    clouds: Layer

    def attenuation(self) -> Layer:
        """Return the total attenuation of the beam."""
        return np.asarray(self.tissue - AIR * self.air + VESSEL * self.vessels + self.dense)

    def in_lung(self, layer: Layer) -> Layer:
        """Return the part of a shadow in the lungs; a little also shows through the heart."""
        cavity = np.maximum(self.cavities[RIGHT], self.cavities[LEFT])
        return np.asarray(layer * (0.15 * cavity + 0.85 * self.field), np.float32)

    def clouded(self, layer: Layer, random: np.random.Generator, amount: float) -> Layer:
        """Return the layer with the uneven density of partly filled air spaces."""
        down, right = random.integers(0, self.canvas.size, 2).tolist()
        # mirrored at its edges, because a texture that does not repeat would leave a straight seam where it is rolled
        across = np.concatenate([self.clouds[down:], self.clouds[::-1][:down]])
        shifted = np.concatenate([across[:, right:], across[:, ::-1][:, :right]], axis=1)
        return np.asarray(layer * np.clip(1 + amount * shifted, 0.1, 1.9), np.float32)

    def shade(self, layer: Layer, contrast: float) -> None:
        """Add a shadow."""
        self.dense = self.dense + np.float32(contrast) * layer

    def clear(self, region: Layer, share: float = 1.0) -> None:
        """Remove vessels from a region."""
        self.vessels = self.vessels * (1 - np.float32(share) * region)


def build(exam: Exam, anatomy: Anatomy, size: int) -> Chest:
    """Draw the chest without any finding."""
    canvas = Canvas(size, anatomy.pose)
    heart = canvas.fill(heart_outline(anatomy), blur=0.0035)
    vessels_above = canvas.fill(*great_vessels(anatomy), blur=0.0065)
    corners = np.array([(1.4, anatomy.angle), (1.4, 1.4), (-0.4, 1.4), (-0.4, anatomy.angle)])
    abdomen = np.concatenate([diaphragm(anatomy, RIGHT), diaphragm(anatomy, LEFT)[::-1], corners])
    below = canvas.fill(abdomen, blur=0.0028)
    cavities = {side: canvas.fill(pleural_cavity(anatomy, side), blur=0.0035) for side in SIDES}
    solid = np.maximum(heart, vessels_above)
    cavity = np.maximum(cavities[RIGHT], cavities[LEFT])
    field = cavity * (1 - solid) * (1 - below)
    clouds = canvas.texture(exam.patient_random("parenchyma"), octaves=5)
    # the air is thin at the rim of the lungs, and deep in their centre
    rim, deep = canvas.soften(cavity, 0.016), canvas.soften(cavity, 0.055)
    air = np.asarray(cavity * (0.34 * rim + 0.66 * np.sqrt(np.clip(rim * deep, 0, 1))))
    air = air * (1 - below) * (1 - (1 - BEHIND_HEART) * solid)
    # the apex is thin from front to back, so it holds less air
    rows = (np.arange(canvas.size) + 0.5) / canvas.size
    depth = np.interp(rows, [anatomy.apex, anatomy.apex + 0.06, anatomy.apex + 0.20], [0.58, 0.80, 1.0])
    air *= (1 + 0.034 * clouds) * depth.astype(np.float32)[:, None]
    vessels = draw_vessels(canvas, anatomy, exam.patient_random("vessels")) * (0.35 + 0.65 * field) * cavity
    folds = BREAST * draw_breasts(canvas, anatomy) * (0.5 + anatomy.breast)
    tissue = np.asarray(draw_body(canvas, anatomy) * (1 + 0.012 * clouds) + folds, np.float32)
    bones = (BONE * anatomy.bone) * draw_skeleton(canvas, anatomy)
    if anatomy.calcified_cartilage > 0.15:
        bones += CALCIUM * draw_cartilages(canvas, anatomy, exam.patient_random("cartilage"))
    # no bone outside the skin, and less to see of it where the shadow is dense already
    bones = bones * (np.minimum(5 * tissue, 1) * (1 - 0.45 * np.maximum(below, 0.9 * solid)))
    middle = np.asarray(
        HEART * canvas.soften(heart, 0.02) * heart
        + HILUM * draw_hila(canvas, anatomy, exam.patient_random("hila")) * (1 - 0.75 * heart)
        - AIRWAY * draw_airways(canvas, anatomy)
        - GAS * draw_gas(canvas, anatomy, exam.visit_random("gas")) * below,
        np.float32,
    )
    return Chest(
        canvas=canvas, anatomy=anatomy, field=field, cavities=cavities, heart=heart, air=air,
        vessels=vessels * (1 - 0.9 * below), tissue=tissue, dense=bones + middle, clouds=clouds,
    )  # fmt: skip
