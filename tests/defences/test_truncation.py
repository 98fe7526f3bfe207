from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from stoic.data import Observations
from stoic.defences import AdaptiveTruncation, Truncation, Trust
from stoic.domains import Box
from stoic.kernels import RBF
from stoic.models import GaussianProcess
from stoic.posteriors import Prior

BOX = Box([3.0], [5.0])
GRID = BOX.grid(12)
PRIOR = Prior(RBF(0.5), 0.3, 7.0)


def rows(observed, start=0):
    observed = np.asarray(observed, dtype=float)
    x = np.linspace(3.0, 5.0, len(observed))[:, None]
    return Observations(x, observed, np.full(len(observed), np.nan), start=start)


@pytest.mark.parametrize(
    ("t", "moment", "alpha", "level"),
    [
        (1, 4.0, 1.0, 2.0),  # sqrt(v)
        (16, 4.0, 1.0, 4.0),  # sqrt(v) t^(1/4)
        (81, 8.0, 0.5, 4.0 * 81 ** (1 / 3)),  # 8^(2/3) = 4, exponent 1 / (2 * 1.5)
    ],
)
def test_the_level_is_the_papers(t, moment, alpha, level):
    assert Truncation(moment, alpha).level(t) == pytest.approx(level, rel=1e-14)
    assert Truncation(moment, alpha, 2.5).level(t) == pytest.approx(2.5 * level, rel=1e-14)


def test_what_is_cut_counts_as_a_play_at_the_prior_mean():
    # About 7, with b_t = 2 t^(1/4): 2, 2.378, 2.632, 2.828, 2.991, 3.130.
    targets = Truncation(4.0)(rows([9.0, 4.5, np.nan, 1e300, -np.inf, 10.1]), PRIOR)
    assert_array_equal(targets.values, [9.0, 7.0, 7.0, 7.0, 7.0, 10.1])
    assert_array_equal(targets.noise, [0.3, 0.3, np.inf, 0.3, np.inf, 0.3])
    assert_array_equal(targets.trust, [1.0, 0.0, 0.0, 0.0, 0.0, 1.0])


def test_the_number_of_a_result_decides_and_its_company_does_not():
    y = 7.0 + 3.0 * np.random.default_rng(0).standard_t(3, 60)
    y[[4, 9, 20]] = np.nan, np.inf, -1e300
    together = Truncation(4.0, 0.7)(rows(y), PRIOR)
    assert 5 < np.count_nonzero(together.trust == 0.0) < 55
    cuts = [*range(31), 60]  # one by one, and then the rest
    apart = [Truncation(4.0, 0.7)(rows(y[i:j], start=i), PRIOR) for i, j in pairwise(cuts)]
    for part in ("values", "noise", "trust"):
        found = np.concatenate([getattr(each, part) for each in apart])
        assert_array_equal(found, getattr(together, part))


def test_a_result_at_the_level_is_kept_and_one_beyond_it_is_not():
    at = Truncation(4.0)(rows([9.0, 5.0]), PRIOR)
    assert_array_equal(at.trust, [1.0, 1.0])
    beyond = Truncation(4.0)(rows([np.nextafter(9.0, 10.0)]), PRIOR)
    assert_array_equal(beyond.trust, [0.0])


@pytest.mark.parametrize("domain", [BOX, GRID], ids=["box", "grid"])
def test_where_nothing_is_cut_it_is_trust(domain):
    rng = np.random.default_rng(1)
    x = domain.sample(30, rng)
    told = Observations(x, rng.normal(7.0, 1.0, 30), np.full(30, np.nan), domain.locate(x))
    a = GaussianProcess(PRIOR, Truncation(1e6))(domain, told)
    b = GaussianProcess(PRIOR, Trust())(domain, told)
    z = domain.sample(9, rng)
    for mine, theirs in zip(a.predict(z), b.predict(z), strict=True):
        assert_array_equal(mine, theirs)


def test_the_mean_moves_by_no_more_than_the_level_allows():
    rng = np.random.default_rng(2)
    x, y = BOX.sample(20, rng), rng.normal(7.0, 1.0, 20)
    z = BOX.sample(50, rng)
    defence = Truncation(2.0)

    def mean(last):
        told = Observations(x, np.append(y[:-1], last), np.full(20, np.nan))
        return GaussianProcess(PRIOR, defence)(BOX, told).predict(z)[0]

    base = mean(7.0)
    worst = max(np.abs(mean(v) - base).max() for v in (1e300, 20.0, 9.9, 4.5, -1e9, 8.0))
    largest = np.abs(mean(7.0 + (1.0 - 1e-12) * defence.level(20)) - base).max()
    assert 0.3 < worst <= largest


def test_the_adaptive_one_settles_on_the_scale():
    y = np.append(100.0 + 10.0 * np.random.default_rng(3).standard_normal(50), 1e300)
    told = rows(y)
    settled = AdaptiveTruncation(3.0, 0.5).fit(BOX, told)
    assert (settled.moment, settled.alpha) == (3.0, 0.5)
    assert 6.0 < settled.scale < 15.0
    with pytest.raises(TypeError, match="must be fitted"):
        AdaptiveTruncation()(told, PRIOR)
    for unit in (1.0, 1e100):
        scaled = AdaptiveTruncation().fit(BOX, rows(unit * y[:50])).scale
        assert_allclose(scaled / unit, AdaptiveTruncation().fit(BOX, rows(y[:50])).scale)


@pytest.mark.parametrize("moment", [0.0, -1.0, np.inf, np.nan])
def test_a_moment_that_bounds_nothing_is_refused(moment):
    for defence in (Truncation, AdaptiveTruncation):
        with pytest.raises(ValueError, match="positive finite number"):
            defence(moment)


@pytest.mark.parametrize("alpha", [0.0, 1.5, np.nan])
def test_an_alpha_outside_its_range_is_refused(alpha):
    with pytest.raises(ValueError, match=r"is in \(0, 1\]"):
        Truncation(1.0, alpha)


def test_a_scale_that_is_none_is_refused():
    with pytest.raises(ValueError, match="scale is a positive"):
        Truncation(1.0, 1.0, np.inf)
