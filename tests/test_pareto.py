"""Fronts, hypervolumes and boxes against literal twins."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from stoic.pareto import boxes_beyond, distinct, hypervolume, non_dominated


def dominates(one, other):
    return bool((one >= other).all() and (one > other).any())


def literal_volume(values, reference):
    """Inclusion and exclusion over all subsets of the boxes below the values."""
    total = 0.0
    for size in range(1, len(values) + 1):
        for subset in itertools.combinations(values, size):
            corner = np.minimum.reduce(subset)
            total -= (-1.0) ** size * np.prod(np.maximum(corner - reference, 0.0))
    return total


def draws(n, k, seed, coarse):
    values = np.random.default_rng(seed).standard_normal((n, k))
    return np.round(values) if coarse else values  # coarse ones have ties and repeats


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("seed", range(5))
class TestOfDraws:
    def test_a_row_is_on_the_front_if_no_other_one_dominates_it(self, k, coarse, seed):
        values = draws(30, k, seed, coarse)
        literal = [not any(dominates(other, row) for other in values) for row in values]
        assert non_dominated(values).tolist() == literal

    def test_the_volume_is_that_of_inclusion_and_exclusion(self, k, coarse, seed):
        values, reference = draws(8, k, seed, coarse), np.full(k, -0.7)
        assert hypervolume(values, reference) == pytest.approx(literal_volume(values, reference))

    def test_the_boxes_partition_what_is_beyond_the_front(self, k, coarse, seed):
        values, reference = draws(12, k, seed, coarse), np.full(k, -0.7)
        lower, upper = boxes_beyond(values, reference)
        assert (lower < upper).all()
        assert (lower >= reference).all()
        points = np.random.default_rng(seed + 100).uniform(-0.7, 3.5, (400, k))
        inside = (points[:, None] > lower).all(-1) & (points[:, None] < upper).all(-1)
        beyond = ~(values[None] >= points[:, None]).all(-1).any(axis=1)
        assert inside.sum(axis=1).tolist() == beyond.astype(int).tolist()

    def test_what_a_point_adds_is_the_volume_of_its_boxes(self, k, coarse, seed):
        values, reference = draws(7, k, seed, coarse), np.full(k, -0.7)
        lower, upper = boxes_beyond(values, reference)
        for point in np.random.default_rng(seed).uniform(-1.0, 3.0, (10, k)):
            added = np.prod(np.maximum(np.minimum(point, upper) - lower, 0.0), axis=1).sum()
            both = hypervolume(np.vstack([values, point]), reference)
            assert added == pytest.approx(both - hypervolume(values, reference), abs=1e-9)


def test_the_number_of_boxes_grows_as_that_of_the_front():
    for n in (20, 80):
        angles = np.abs(np.random.default_rng(n).standard_normal((n, 3)))
        sphere = angles / np.linalg.norm(angles, axis=1, keepdims=True)
        assert len(boxes_beyond(sphere, np.zeros(3))[0]) <= 3 * n
        assert len(boxes_beyond(sphere[:, :2], np.zeros(2))[0]) <= n + 1


def test_nothing_is_dominated_by_nothing():
    none = np.empty((0, 2))
    lower, upper = boxes_beyond(none, np.zeros(2))
    assert (lower.tolist(), upper.tolist()) == ([[0.0, 0.0]], [[np.inf, np.inf]])
    assert hypervolume(none, np.zeros(2)) == 0.0
    assert non_dominated(none).tolist() == []


def literal_dominance(mean, std, agreed):
    """Whether i dominates j if outputs with equal results and nearly equal means do not count."""
    m, k = mean.shape
    found = np.zeros((m, m), dtype=bool)
    for i, j in itertools.permutations(range(m), 2):
        counts = [
            agreed[i, c] != agreed[j, c]
            or abs(mean[i, c] - mean[j, c]) > 0.1 * np.hypot(std[i, c], std[j, c])
            for c in range(k)
        ]
        found[i, j] = dominates(mean[i][counts], mean[j][counts])
    return found


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("seed", range(10))
def test_of_a_front_that_has_equals_those_that_the_rest_dominates_are_left_out(k, seed):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((60, k))
    values = values[non_dominated(values)]
    std = rng.uniform(0.0, 8.0, values.shape)
    agreed = rng.integers(0, 3, values.shape).astype(float)
    agreed[rng.random(values.shape) < 0.2] = np.nan
    kept = distinct(values, std, agreed)
    dominance = literal_dominance(values, std, agreed)
    assert not dominance[np.ix_(kept, kept)].any()
    assert dominance[kept][:, ~kept].any(axis=0).all()
    assert distinct(values, 0.0 * std, agreed).all()
    assert distinct(values, std, np.full_like(values, np.nan)).all()


def test_of_points_that_dominate_each_other_in_a_circle_one_is_left():
    means = np.array([[3.0, 1.0, 2.0], [2.0, 3.0, 1.0], [1.0, 2.0, 3.0]])
    agreed = np.array([[1.0, 2.0, 2.0], [1.0, 2.0, 1.0], [2.0, 2.0, 1.0]])
    assert distinct(means, np.full((3, 3), 50.0), agreed).sum() in (1, 2)
