"""PIP-Net's losses one number at a time, straight from its paper."""

import math


def alignment(one, other):
    """Mean over films and patches of -log of the inner product of both views' parts; ``one[film][part][patch]``."""
    costs = []
    for film, twin in zip(one, other, strict=True):
        for patch in range(len(film[0])):
            same = sum(film[part][patch] * twin[part][patch] for part in range(len(film)))
            costs.append(-math.log(same))
    return sum(costs) / len(costs)


def presence(present):
    """Mean over parts of -log tanh of the sum over films."""
    parts = len(present[0])
    return -sum(math.log(math.tanh(sum(film[part] for film in present))) for part in range(parts)) / parts


def votes(present, weights):
    """log((p w)^2 + 1) for each class, weights below zero being zero."""
    return [math.log(sum(p * max(w, 0.0) for p, w in zip(present, row, strict=True)) ** 2 + 1) for row in weights]
