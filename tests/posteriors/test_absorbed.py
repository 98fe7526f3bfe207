"""Rows that are absorbed, against the same Gaussian written out."""

from types import SimpleNamespace

import numpy as np

from stoic.data import Observations
from stoic.kernels import Matern52, Scaled
from stoic.posteriors import Exact, Prior, as_observed
from stoic.posteriors.absorbed import _SLACK, Absorbed
from stoic.posteriors.cavity import given_the_others

PRIOR = Prior(Scaled(Matern52(np.array([0.5, 0.8])), 2.0), 0.1, 1.0)
AT = np.random.default_rng(1).random((7, 2))


def rows(n, seed):
    rng = np.random.default_rng(seed)
    noise = np.where(np.arange(n) % 3, np.nan, rng.uniform(0.05, 0.4, n))
    return Observations(rng.random((n, 2)), 1.0 + rng.standard_normal(n), noise)


def joint(window, inducing, others, noise, at=AT):
    """Covariance of u, the other rows of the window, absorbed rows and ``at``, as FITC supposes.

    Also what the noise of each row, and the slack of u, add to it, and the results.
    """
    k, u = PRIOR.kernel, window.x[inducing]
    own = window.own_noise(PRIOR.noise)
    slack = _SLACK * own[inducing].min()
    inverse = np.linalg.inv(k(u, u) + slack * np.eye(len(u)))
    rest = np.delete(np.arange(len(window)), inducing)
    x = np.concatenate([u, window.x[rest], others.x, at])
    K, Q = k(x, x), k(x, u) @ inverse @ k(u, x)
    a, b = len(window), len(window) + len(others)
    C = K.copy()
    C[a:b] = Q[a:b]  # absorbed rows know of all others only through u
    C[:, a:b] = Q[:, a:b]
    C[np.arange(a, b), np.arange(a, b)] = np.diagonal(K)[a:b]
    C[: len(u), a:b], C[a:b, : len(u)] = K[: len(u), a:b], K[a:b, : len(u)]
    added = np.concatenate([own[inducing] + slack, own[rest], noise])
    y = np.concatenate([window.observed[inducing], window.observed[rest], others.observed])
    return C, added, y


def literally(window, inducing, others, noise, at=AT):
    """Mean and standard deviation at ``at`` of one Gaussian, given what FITC supposes."""
    C, added, y = joint(window, inducing, others, noise, at)
    b = len(y)
    A, cross = C[:b, :b] + np.diag(added), C[b:, :b]
    mean = PRIOR.mean + cross @ np.linalg.solve(A, y - PRIOR.mean)
    covariance = C[b:, b:] - cross @ np.linalg.solve(A, cross.T)
    return mean, np.sqrt(np.diagonal(covariance))


def absorbing(n_window=9, inducing=6, n_others=25):
    window, others = rows(n_window, 2), rows(n_others, 3)
    inducing = np.arange(inducing)
    noise = others.own_noise(PRIOR.noise)
    own = window.own_noise(PRIOR.noise)[inducing]
    absorbed = Absorbed.at(PRIOR, window.x[inducing], own).absorb(others, noise)
    posterior = absorbed.condition(as_observed, 34, window, inducing)
    return SimpleNamespace(**locals())


def test_absorbed_rows_count_as_in_one_gaussian():
    case = absorbing()
    mean, std = case.posterior.predict(AT)
    expected, deviation = literally(case.window, case.inducing, case.others, case.noise)
    np.testing.assert_allclose(mean, expected, rtol=1e-8)
    np.testing.assert_allclose(std, deviation, rtol=1e-8)
    assert case.posterior.n == 34


def test_without_others_it_is_the_exact_posterior_but_for_the_slack():
    case = absorbing()
    nothing = Absorbed.at(PRIOR, case.window.x[case.inducing], case.own)
    sparse = nothing.condition(as_observed, 9, case.window, case.inducing)
    exact = Exact.condition(PRIOR, as_observed, case.window, as_observed(case.window, PRIOR))
    for mine, its in zip(sparse.predict(AT), exact.predict(AT), strict=True):
        np.testing.assert_allclose(mine, its, atol=0.01)
    assert abs(sparse.information - exact.information) < 0.05


def test_a_row_of_infinite_noise_says_nothing():
    case = absorbing()
    noise = case.noise.copy()
    noise[::2] = np.inf
    case.others.observed[0] = 1e100
    left = case.others.only(np.flatnonzero(np.isfinite(noise)))
    absorbed = Absorbed.at(PRIOR, case.window.x[case.inducing], case.own).absorb(case.others, noise)
    mean, std = absorbed.condition(as_observed, 34, case.window, case.inducing).predict(AT)
    expected, deviation = literally(case.window, case.inducing, left, noise[np.isfinite(noise)])
    np.testing.assert_allclose(mean, expected, rtol=1e-8)
    np.testing.assert_allclose(std, deviation, rtol=1e-8)


def test_leave_one_out_is_absorbing_all_but_one():
    case = absorbing(n_window=6)  # all of them are inducing
    mean, std = case.absorbed.given_the_others(case.posterior, case.others, case.noise)
    empty = Absorbed.at(PRIOR, case.window.x[case.inducing], case.own)
    for i in range(0, 25, 6):
        noise = case.noise.copy()
        noise[i] = np.inf
        posterior = empty.absorb(case.others, noise).condition(
            as_observed, 31, case.window, case.inducing
        )
        expected, deviation = posterior.predict(case.others.x[[i]])
        np.testing.assert_allclose([mean[i]], expected, rtol=1e-7)
        np.testing.assert_allclose([std[i]], deviation, rtol=1e-7)


def test_rows_of_a_window_are_left_out_one_by_one():
    case = absorbing()  # the last three of nine are not inducing
    targets = as_observed(case.window, PRIOR)
    targets.noise[[2, 7]] = np.inf  # these say nothing
    mean, std = case.absorbed.without_each(case.window, targets, case.inducing)
    C, added, y = joint(case.window, case.inducing, case.others, case.noise)
    A = C[: len(y), : len(y)] + np.diag(added)
    own = case.window.own_noise(PRIOR.noise)
    for i in range(9):
        others = np.setdiff1d(np.arange(len(y)), [i, 2, 7])
        pull = np.linalg.solve(A[np.ix_(others, others)], A[others, i])
        np.testing.assert_allclose(mean[i], PRIOR.mean + pull @ (y[others] - PRIOR.mean), rtol=1e-9)
        np.testing.assert_allclose(std[i] ** 2, A[i, i] - own[i] - pull @ A[others, i], rtol=1e-9)


def test_rows_of_a_window_without_an_inducing_one_or_a_result():
    case = absorbing()
    targets = as_observed(case.window, PRIOR)
    exact = Exact.condition(PRIOR, as_observed, case.window, targets)
    empty = Absorbed.at(PRIOR, case.window.x[:0], case.own[:0])
    mean, std = empty.without_each(case.window, targets, np.arange(0))
    for mine, its in zip((mean, std), given_the_others(exact, case.window), strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-9)
    targets.noise[:] = np.inf
    mean, std = empty.without_each(case.window, targets, np.arange(0))
    np.testing.assert_array_equal(mean, 1.0)
    np.testing.assert_allclose(std, np.sqrt(2.0))


def test_a_row_far_from_all_others_is_expected_at_the_prior_mean():
    # The slack of u is a hundred times what the others know of this row
    prior = Prior(Scaled(Matern52(np.array([0.05, 0.05])), 1e6), 1e-3, 1.0)
    window = rows(8, 4)
    window.x[0], window.observed[0], window.noise[:] = 50.0, 1e3, np.nan
    absorbed = Absorbed.at(prior, window.x, window.own_noise(prior.noise))
    mean, std = absorbed.without_each(window, as_observed(window, prior), np.arange(8))
    np.testing.assert_allclose([mean[0], std[0]], [1.0, 1e3], rtol=1e-6)


def test_blocks_of_rows_add_up(monkeypatch):
    once = absorbing().absorbed
    monkeypatch.setattr("stoic.posteriors.absorbed._ROWS", 4)
    in_blocks = absorbing().absorbed
    np.testing.assert_allclose(in_blocks.G, once.G, rtol=1e-10)
    np.testing.assert_allclose(in_blocks.g, once.g, rtol=1e-8, atol=1e-12)
