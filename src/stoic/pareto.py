"""Fronts of vectors to maximise: what dominates, hypervolumes, and the boxes beyond a front."""

from __future__ import annotations

import numpy as np

from stoic.data import Array, Booleans

# Of a difference, in its standard deviations: of three fronts of 40 noisy accuracies in whole
# percent, beside an exact price, all points are kept, and with 1 instead of 0.1 34, 26 and 33.
_EQUAL = 0.1
_ROUNDING = 1e-12  # relative, of a mean

Ends = tuple[tuple[float, float], ...]  # lower and upper end of a box in each output


def non_dominated(values: Array) -> Booleans:
    """Mask of the rows of ``values`` (n, k) that no other row dominates, shape (n,).

    A row dominates another one if it is no worse in any output, and better in one.
    """
    mask = np.zeros(len(values), dtype=bool)
    front = values[:0]
    # In lexicographic order, so that a row comes after those that dominate it.
    for row in np.lexsort(-values.T[::-1]):
        no_worse = (front >= values[row]).all(axis=1)
        if not (no_worse & (front > values[row]).any(axis=1)).any():
            mask[row] = True
            front = np.concatenate([front, values[[row]]])
    return mask


def distinct(mean: Array, std: Array, agreed: Array) -> Booleans:
    """Mask of the points of a front, (m,), that no other one of the mask dominates.

    All arguments are (m, k): means, their deviations, and the result of each output, nan where
    there is none or several. Two points are equal in an output if their results are, and their
    means differ by less than a tenth of the deviation of this difference, or by rounding.
    """
    kept = np.ones(len(mean), dtype=bool)
    alike = [_shared(column) for column in agreed.T]
    rows = np.flatnonzero(np.any(alike, axis=0))  # others are as far apart as before
    better = np.zeros((len(rows), len(rows)), dtype=bool)
    for m, s, same in zip(mean[rows].T, std[rows].T, agreed[rows].T, strict=True):
        apart, size = m[:, None] - m, np.maximum(np.abs(m)[:, None], np.abs(m))
        equal = np.abs(apart) <= _EQUAL * np.hypot(s[:, None], s) + _ROUNDING * size
        better |= (apart > 0.0) & ~(equal & (same[:, None] == same))
    dominates = better & ~better.T
    # One after another: what only points dominate that are dominated themselves is kept
    left = np.ones(len(rows), dtype=bool)
    while left.any():
        free = left & ~dominates[left].any(axis=0)
        free = free if free.any() else left & (np.cumsum(left) == 1)  # of a cycle one
        dominated = left & dominates[free].any(axis=0) & ~free
        kept[rows[dominated]] = False
        left &= ~(free | dominated)
    return kept


def _shared(values: Array) -> Booleans:
    """Mask of the values (m,) that another one equals."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    shared: Booleans = (counts[place] > 1) & ~np.isnan(values)
    return shared


def hypervolume(values: Array, reference: Array) -> float:
    """Volume that ``values`` (n, k) dominate above a ``reference`` (k,).

    By slices of the last output; O(n log n) for two outputs and O(n^2 log n) for three.
    """
    values = values[(values > reference).all(axis=1)]
    if not len(values):
        return 0.0
    if len(reference) == 1:
        return float(values.max() - reference[0])
    values = values[np.argsort(-values[:, -1], kind="stable")]
    # A slice from a row down to the next one is dominated by it and those before it
    heights = values[:, -1] - np.append(values[1:, -1], reference[-1])
    if len(reference) == 2:
        return float(heights @ (np.maximum.accumulate(values[:, 0]) - reference[0]))
    slices = [
        height * hypervolume(values[: row + 1, :-1], reference[:-1])
        for row, height in enumerate(heights.tolist())
        if height > 0.0
    ]
    return float(sum(slices))


def boxes_beyond(values: Array, reference: Array) -> tuple[Array, Array]:
    """Partition what is above a ``reference`` (k,) and not dominated by ``values`` (n, k).

    Returns
    -------
    lower, upper:
        Opposite corners of the boxes, (c, k) both; an upper end may be infinite. There are n + 1 of
        them for two outputs and O(n) for three, see [Yang2019]_.
    """
    found = np.array(_boxes(values, reference))
    return found[..., 0], found[..., 1]


def _boxes(values: Array, reference: Array) -> list[Ends]:
    """Partition by slices of the last output, from the top; equal boxes of two slices are one."""
    if len(reference) == 1:
        return [((max(float(values.max(initial=-np.inf)), float(reference[0])), np.inf),)]
    last = values[:, -1]
    levels = np.unique(last[last > reference[-1]])[::-1].tolist()
    found: list[Ends] = []
    begun: dict[Ends, float] = {}  # box in the other outputs -> upper end in this one
    top = np.inf  # above all rows, one box
    for level in [*levels, float(reference[-1])]:
        here = dict.fromkeys(_boxes(values[last >= top, :-1], reference[:-1]), top)
        found += [(*box, (top, begun.pop(box))) for box in list(begun) if box not in here]
        begun = here | begun
        top = level
    return found + [(*box, (top, high)) for box, high in begun.items()]
