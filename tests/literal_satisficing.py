"""Slow twins of fragility, radius and worst value: double loops over the definitions."""

from __future__ import annotations

import math


def fragility(f, threshold, distances, p=1.0):
    kappa = []
    for x in range(len(f)):
        worst = -math.inf if p == 1.0 else 0.0
        for y in range(len(f)):
            if y == x or distances[x][y] == math.inf:
                continue
            if p == 1.0:
                worst = max(worst, (threshold - f[y]) / distances[x][y])
            elif f[y] < threshold:
                gap = 1.0 if p == math.inf else (threshold - f[y]) ** (1.0 / p)
                worst = max(worst, gap / distances[x][y])
        kappa.append(worst if f[x] >= threshold else math.inf)
    return kappa


def critical_radius(f, threshold, distances):
    largest = max(d for row in distances for d in row if d < math.inf)
    radius = []
    for x in range(len(f)):
        nearest = math.inf
        for y in range(len(f)):
            if f[y] < threshold:
                nearest = min(nearest, distances[x][y])
        nearest = largest if nearest == math.inf else nearest
        radius.append(nearest if f[x] >= threshold else -math.inf)
    return radius


def worst_value(f, radius, distances):
    return [
        min(f[y] for y in range(len(f)) if distances[x][y] <= radius or y == x)
        for x in range(len(f))
    ]


def first(values, best, rows):
    """The lowest of the rows whose value is the best of them, ties to 9 digits."""
    target = best(values[row] for row in rows)
    for row in rows:
        if math.isclose(values[row], target, rel_tol=1e-9):
            return row, target
    return None
