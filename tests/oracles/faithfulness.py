"""Insertion, deletion and box energy as loops over pixels; films and maps are nested lists of plain numbers."""

import math
from fractions import Fraction
from itertools import pairwise


def upsampled(one_map, side, number=Fraction):
    """Bilinear, read at the middle of each pixel; beyond the outermost patch centres the map repeats itself."""
    values = [[number(value) for value in row] for row in one_map]
    rows = [_neighbours(y, side, len(values), number) for y in range(side)]
    columns = [_neighbours(x, side, len(values[0]), number) for x in range(side)]
    return [[_read(values, row, column) for column in columns] for row in rows]


def _read(values, row, column):
    (top, bottom, below), (left, right, beyond) = row, column
    upper = values[top][left] * (1 - beyond) + values[top][right] * beyond
    lower = values[bottom][left] * (1 - beyond) + values[bottom][right] * beyond
    return upper * (1 - below) + lower * below


def _neighbours(pixel, side, patches, number):
    """The patches before and after the middle of a pixel, and how far it is from the one to the other."""
    centre = min(max(Fraction(2 * pixel + 1, 2 * side) * patches - Fraction(1, 2), 0), patches - 1)
    before = math.floor(centre)
    return before, min(before + 1, patches - 1), number(centre - before)


def pixels_by_saliency(one_map, side):
    """The most salient first; of equal ones, which fractions tell to the last bit, the first, row by row."""
    wide = upsampled(one_map, side)
    return sorted(((y, x) for y in range(side) for x in range(side)), key=lambda at: -wide[at[0]][at[1]])


def blurred(film, spread):
    """Every pixel the Gaussian mean of those on the film."""
    side = len(film)

    def weight(a, b):
        return math.exp(-((a - b) ** 2) / (2 * spread**2))

    def mean(y, x):
        weights = [[weight(y, i) * weight(x, j) for j in range(side)] for i in range(side)]
        total = sum(map(sum, weights))
        return sum(weights[i][j] * film[i][j] for i in range(side) for j in range(side)) / total

    return [[mean(y, x) for x in range(side)] for y in range(side)]


def deletion_curve(answer, film, one_map, steps):
    grey = sum(map(sum, film)) / len(film) ** 2
    return _curve(answer, film, [[grey] * len(film) for _ in film], film, one_map, steps)


def insertion_curve(answer, film, one_map, steps, spread):
    return _curve(answer, blurred(film, spread), film, film, one_map, steps)


def _curve(answer, start, end, untouched, one_map, steps):
    """Probability of the untouched film's class while the pixels of ``start`` become those of ``end``."""
    before = answer(untouched)
    asked = before.index(max(before))
    order, now = pixels_by_saliency(one_map, len(start)), [list(row) for row in start]
    curve, changed = [answer(now)[asked]], 0
    for step in range(1, steps + 1):
        while changed < step * len(order) / steps:
            y, x = order[changed]
            now[y][x] = end[y][x]
            changed += 1
        curve.append(answer(now)[asked])
    return curve


def area(curve):
    """Under the curve, from 0 to 1, by trapezia."""
    return sum((a + b) / 2 for a, b in pairwise(curve)) / (len(curve) - 1)


def box_energy(one_map, film, boxes, frame):
    """Share of the shifted map's energy in boxes whose edges are those of cells of the frame."""
    lowest = min(map(min, one_map))
    energy = upsampled([[value - lowest for value in row] for row in one_map], frame, float)
    inside = total = 0.0
    for y in range(frame):
        for x in range(frame):
            at = ((x + 0.5) * film[0] / frame, (y + 0.5) * film[1] / frame)
            total += energy[y][x]
            if any(box[0] <= at[0] < box[2] and box[1] <= at[1] < box[3] for box in boxes):
                inside += energy[y][x]
    return inside / total
