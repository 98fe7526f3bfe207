import itertools
import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from stoic.data import Observations
from stoic.kernels import RBF
from stoic.posteriors import Prior
from stoic.posteriors.places import Places, thresholds

PRIOR = Prior(RBF(1.0), 0.5, 2.0)
VALUES = st.one_of(
    st.floats(-10.0, 10.0),
    st.sampled_from([0.0, 1.0, -1.0, 2.0, 1e300, -1e250, 1e150, math.nan, math.inf, -math.inf]),
)


def told(plays, start=0, on_arms=True):
    arms = np.array([a for a, _ in plays], dtype=np.intp)
    observed = np.array([y for _, y in plays], dtype=float)
    x = arms[:, None] * np.array([[1.0, -0.5]])
    noise = np.full(len(plays), np.nan)
    return Observations(x, observed, noise, arms if on_arms else None, start)


def parts(sequence, cuts):
    edges = [0, *sorted(min(c, len(sequence)) for c in cuts), len(sequence)]
    return [sequence[a:b] for a, b in itertools.pairwise(edges)]


@given(
    st.lists(st.tuples(st.integers(0, 4), VALUES), max_size=50),
    st.lists(st.integers(0, 50), max_size=4),
    st.lists(st.floats(0.0, 20.0), min_size=1, max_size=3),
    st.booleans(),
)
def test_sums_and_counts_below_any_threshold(plays, cuts, levels, on_arms):
    places, done = Places(PRIOR, 2), 0
    for part in parts(plays, cuts):
        places.add(told(part, done, on_arms))
        done += len(part)
        order = list(dict.fromkeys(a for a, _ in plays[:done]))
        for level in levels:
            limits = np.array([[level, level / 3.0, 1e180, 1e300]] * len(order)).reshape(-1, 4)
            sums, counts = places.below(limits)
            for slot, arm in enumerate(order):
                z = [y - 2.0 for a, y in plays[:done] if a == arm]
                for i, limit in enumerate(limits[slot]):
                    kept = [v for v in z if abs(v) <= limit and abs(v) < 1e200]
                    assert counts[slot, i] == len(kept)
                    # A sum of n numbers of size s is right to n s rounding errors.
                    size = max((abs(v) for v in kept), default=0.0)
                    assert_allclose(
                        sums[slot, i], math.fsum(kept), rtol=0, atol=1e-13 * size + 1e-15
                    )
    assert places.n == len(plays)
    assert_array_equal(places.plays, [sum(a == b for a, _ in plays) for b in order])
    assert_array_equal(places.weights, places.plays)


def test_a_noise_of_its_own_is_a_weight():
    places = Places(PRIOR, 1)
    places.add(
        Observations(np.zeros((3, 1)), np.array([3.0, 4.0, 0.0]), np.array([0.25, np.nan, 5.0]))
    )
    # 0.5 / 0.25 = 2 times 1; 1 times 2; 0.1 times -2
    assert_allclose(places.weights, [3.1])
    sums, counts = places.below(np.array([[0.2, 1.9, 2.0]]))
    assert_allclose(sums, [[-0.2, -0.2, 3.8]])
    assert_array_equal(counts, [[1.0, 1.0, 3.0]])


def test_zero_is_one_place_whatever_its_sign():
    places = Places(PRIOR, 1)
    places.add(Observations(np.array([[0.0], [-0.0]]), np.ones(2), np.full(2, np.nan)))
    assert len(places) == 1


def test_thresholds_are_numbers():
    u = np.array([[0.0, -2.0, 1e-320, 1e300]])
    with np.errstate(all="raise"):
        assert_array_equal(thresholds(4.0, u)[0, :2], [1e300, 2.0])
        assert_array_equal(thresholds(0.0, u), [[1e300, 0.0, 0.0, 0.0]])
        assert_array_equal(thresholds(math.inf, u), [[1e300] * 4])
        assert np.isfinite(thresholds(4.0, u)).all()
