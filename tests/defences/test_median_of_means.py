import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from stoic.data import Observations
from stoic.defences import MedianOfMeans
from stoic.domains import Finite
from stoic.kernels import RBF
from stoic.posteriors import Prior

GRID = Finite(np.linspace(0.0, 1.0, 6))
PRIOR = Prior(RBF(0.5), 0.3, 7.0)


def told(arms, observed, on_arms=True):
    arms = np.asarray(arms, dtype=np.intp)
    observed = np.asarray(observed, dtype=float)
    noise = np.full(len(arms), np.nan)
    return Observations(GRID.points[arms], observed, noise, arms if on_arms else None)


def literal(arms, observed, blocks):
    """Place by place, block by block."""
    values = np.full(len(arms), PRIOR.mean)
    for arm in set(arms):
        at = [i for i in range(len(arms)) if arms[i] == arm and math.isfinite(observed[i])]
        if not at:
            continue
        k = len(at)
        B = max(1, min(blocks, k // 2))
        groups = [[observed[i] for r, i in enumerate(at) if r * B // k == j] for j in range(B)]
        assert max(map(len, groups)) - min(map(len, groups)) <= 1
        values[at] = np.median([math.fsum(g) / len(g) for g in groups])
    return values


RESULTS = st.one_of(
    st.floats(-100.0, 100.0), st.sampled_from([0.0, 1.0, math.nan, math.inf, -math.inf])
)


@given(
    st.lists(st.tuples(st.integers(0, 4), RESULTS), max_size=60),
    st.integers(1, 7),
    st.booleans(),
)
def test_it_is_the_median_of_the_means_of_blocks(plays, blocks, on_arms):
    arms, observed = [a for a, _ in plays], [y for _, y in plays]
    targets = MedianOfMeans(blocks)(told(arms, observed, on_arms), PRIOR)
    assert_allclose(targets.values, literal(arms, observed, blocks), atol=1e-11)
    assert_array_equal(targets.trust, np.isfinite(observed).astype(float))
    assert_array_equal(targets.noise, np.where(np.isfinite(observed), 0.3, np.inf))


def test_it_survives_fewer_lies_than_half_the_blocks():
    y = np.random.default_rng(0).normal(2.0, 0.1, 40)
    y[[3, 17, 30]] = 1e308
    value = MedianOfMeans(8)(told(np.zeros(40), y), PRIOR).values
    assert_allclose(value, 2.0, atol=0.1)


def test_lemma_2_holds_for_a_tail_without_a_variance():
    # Symmetric Pareto noise of index 1.6, alpha 0.5: v = E|X|^1.5 = 1.6 / (1.6 - 1.5) = 16. The
    # bound may fail in a share exp(-20 / 8) = 8.2 % of 2000 campaigns. Seeded.
    rng, k, blocks, alpha = np.random.default_rng(4), 200, 20, 0.5
    noise = rng.choice([-1.0, 1.0], (2000, k)) * (1.0 + rng.pareto(1.6, (2000, k)))
    bound = (12.0 * 16.0) ** (1.0 / (1.0 + alpha)) * (2.0 * blocks / k) ** (alpha / (1.0 + alpha))
    arms = np.zeros(k)
    targets = [MedianOfMeans(blocks)(told(arms, y), PRIOR).values[0] for y in noise]
    assert np.mean(np.abs(targets) > bound) <= math.exp(-blocks / 8.0)
    # And it is an estimate worth having: below the plain mean's error in the tail.
    assert np.quantile(np.abs(targets), 0.99) < 0.5 * np.quantile(np.abs(noise.mean(axis=1)), 0.99)


def test_blocks_for_a_confidence():
    assert MedianOfMeans.for_confidence(0.1).blocks == 19  # 8 ln 10 = 18.4
    assert MedianOfMeans.for_confidence(0.9).blocks == 1
    with pytest.raises(ValueError, match="between 0 and 1"):
        MedianOfMeans.for_confidence(1.0)
    for wrong in (0, 2.5):
        with pytest.raises(ValueError, match="whole number"):
            MedianOfMeans(wrong)
