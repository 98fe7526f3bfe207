"""Rewards in a span, against sums that are taken again each time."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from stoic.rewards import Rewards, check_span

EARNED = [(0, 0.2), (1, 7.0), (0, -1e300), (0, math.nan), (1, math.inf), (0, 2.5), (1, 1.0)]


def by_hand(low, high):
    clipped = [(i, low if math.isnan(y) else min(max(y, low), high)) for i, y in EARNED]
    means = [np.mean([y for j, y in clipped if j == i]) for i in (0, 1)]
    return means, 2.0 * np.std([y for _, y in clipped])


@pytest.mark.parametrize("first", [(-1.0, 3.0), None])
def test_a_span_that_moves_leaves_no_trace_of_the_one_before(first):
    rewards = Rewards(3, first)
    for i, y in EARNED:
        rewards.add(i, y)
    assert rewards.plays.tolist() == [4, 3, 0]
    for low, high in (first or (0.0, 1.0), (-2.0, 4.0)):
        means, spread = by_hand(low, high)
        assert (rewards.low, rewards.high, rewards.width) == (low, high, high - low)
        assert_allclose(rewards.means[:2], means, rtol=1e-12)
        assert_allclose([rewards.mean(0), rewards.mean(1)], means, rtol=1e-12)
        assert math.isnan(rewards.means[2])
        assert rewards.spread == pytest.approx(spread, rel=1e-12)
        rewards.move(1.0, 1.0, len(EARNED))
    assert not rewards.outgrown(8)
    assert rewards.outgrown(9)


def test_a_span_has_ends_wherever_it_is_found():
    for location, scale in ((1e308, 0.0), (-1e308, 1e308), (0.0, 0.0), (5.0, 1e-300)):
        rewards = Rewards(1, None)
        rewards.add(0, 1.0)
        rewards.move(location, scale, 1)
        assert -math.inf < rewards.low < rewards.high < math.inf
        assert np.isfinite(rewards.means).all()
    before = rewards.low, rewards.high
    rewards.move(math.nan, 1.0, 2)
    assert (rewards.low, rewards.high) == before


@pytest.mark.parametrize("span", [(1.0, 1.0), (2.0, 1.0), (0.0, math.inf), [0.0, 1.0], (0.0,), 3])
def test_a_span_is_a_range(span):
    with pytest.raises(ValueError, match="A span is"):
        check_span(span)
