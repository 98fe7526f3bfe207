import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import literal
from stoic.domains import Box, Finite
from stoic.kernels import RBF, Linear, Matern12, Matern52, Scaled
from stoic.posteriors import (
    Arms,
    Prior,
    as_observed,
    greedy_information,
    information_bounds,
    information_upper_bound,
)


def play_by_play(prior, domain, rounds):
    """The twin: one rank-one update for each play."""
    posterior = Arms(prior, as_observed, domain)
    for _ in range(rounds):
        posterior.observe(int(np.argmax(posterior.variance)), prior.mean, prior.noise)
    return posterior.information


def settings():
    """Prior, arms, rounds, and how far runs may be from single plays."""
    rng = np.random.default_rng(7)
    return [
        (Prior(RBF(0.5), 1.0), Box([-5, -5], [5, 5]).grid(10), 1000, 1e-12),
        (Prior(RBF(2.0), 0.01), Finite(rng.uniform(0.0, 30.0, (60, 3))), 1000, 1e-12),
        (Prior(Matern52(1.0), 0.1), Finite(rng.uniform(90.0, 93.0, 40)), 1000, 1e-5),
        (Prior(Scaled(Matern12(3.0), 5.0), 0.01), Finite(rng.normal(size=30)), 1000, 1e-12),
        (Prior(Linear(), 0.5), Finite(rng.normal(size=(50, 5))), 2000, 1e-6),
        # Two arms that are hardly distinct, and a pair that is much surer than the rest.
        (Prior(RBF(1.0), 1e-3), Finite(np.array([0.0, 1e-4, 2.0])), 1000, 1e-6),
        (Prior(Linear(), 1.0), Finite(np.array([[9.0, 0.0], [0.0, 0.1], [1.0, 1.0]])), 1000, 1e-6),
        # Their plays are exchangeable, so single plays are not the best either.
        (Prior(RBF(0.3), 1.0), Finite(np.linspace(0.0, 1.0, 100)), 1000, 1e-4),
    ]


@pytest.mark.parametrize(("prior", "domain", "rounds", "near"), settings())
def test_runs_come_to_what_single_plays_come_to(prior, domain, rounds, near):
    single = play_by_play(prior, domain, rounds)
    assert_allclose(greedy_information(prior, domain, rounds), single, rtol=near)
    enclosed = information_bounds(prior, domain, rounds)
    assert enclosed.lower <= enclosed.upper <= information_upper_bound(enclosed.lower)
    assert single <= enclosed.upper


@pytest.mark.parametrize(("prior", "domain", "rounds", "near"), settings())
@pytest.mark.parametrize("shorter", [1, 7, 200])
def test_the_plan_is_what_was_promised(prior, domain, rounds, near, shorter):
    enclosed = information_bounds(prior, domain, min(rounds, shorter))
    assert enclosed.plays.sum() == min(rounds, shorter)
    arms = np.flatnonzero(enclosed.plays)
    direct = literal.information(
        prior.kernel, domain.points[arms], prior.noise / enclosed.plays[arms]
    )
    assert_allclose(enclosed.lower, direct, rtol=1e-9)


def test_many_rounds_cost_few_updates(monkeypatch):
    updates = 0
    observe = Arms.observe

    def counted(self, *row):
        nonlocal updates
        updates += 1
        observe(self, *row)

    monkeypatch.setattr(Arms, "observe", counted)
    domain = Box([-5, -5], [5, 5]).grid(6)
    enclosed = information_bounds(Prior(RBF(0.5), 1.0), domain, 10**8)
    assert updates < 20_000
    assert enclosed.plays.sum() == 10**8
    assert enclosed.upper < enclosed.lower * (1.0 + 1e-6)


@pytest.mark.parametrize("kernel", [RBF(0.8), Scaled(Matern12(1.5), 3.0)], ids=repr)
@pytest.mark.parametrize("rounds", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(3))
def test_greedy_against_all_choices(kernel, rounds, seed):
    points = 5.0 + np.random.default_rng(seed).uniform(-1.0, 1.0, (6, 1))
    best = max(
        literal.information(kernel, points[list(rows)], np.full(rounds, 0.2))
        for rows in itertools.combinations_with_replacement(range(6), rounds)
    )
    enclosed = information_bounds(Prior(kernel, 0.2), Finite(points), rounds)
    assert (1.0 - 1.0 / math.e) * best <= enclosed.lower <= best + 1e-12
    assert enclosed.upper >= best - 1e-12
    assert information_upper_bound(enclosed.lower) >= best


def test_equal_arms_share_the_plays():
    # Independent arms: gamma_T = sum 0.5 ln(1 + n_a / noise), best with equal shares.
    prior, domain = Prior(RBF(1e-3), 2.0), Finite(np.arange(4.0))
    enclosed = information_bounds(prior, domain, 4001)
    assert sorted(enclosed.plays) == [1000, 1000, 1000, 1001]
    assert_allclose(enclosed.upper, 2.0 * math.log(1.0 + 4001 / 4 / 2.0), atol=1e-3)


def test_no_rounds_tell_nothing():
    enclosed = information_bounds(Prior(RBF(1.0), 1.0), Finite(np.zeros((1, 1))), 0)
    assert (enclosed.lower, enclosed.upper) == (0.0, 0.0)


def test_a_negative_number_of_rounds_is_refused():
    with pytest.raises(ValueError, match="not negative, got -1"):
        greedy_information(Prior(RBF(1.0), 1.0), Finite(np.zeros((1, 1))), -1)
