import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from stoic.domains import Box, Finite
from stoic.kernels import RBF, Linear, Matern52
from stoic.policies.near_optimal import NearOptimal, near_optimal_design, support_bound
from stoic.posteriors import Prior
from stoic.posteriors.newton import NewtonBasis


def rows(kind, n, D, seed):
    rng = np.random.default_rng(seed)
    if kind == "normal":
        return rng.normal(size=(n, D))
    if kind == "sphere":
        X = rng.normal(size=(n, D))
        return X / np.linalg.norm(X, axis=1)[:, None]
    if kind == "heavy":
        return rng.standard_t(1.0, size=(n, D))
    if kind == "scaled":
        return rng.normal(size=(n, D)) * 10.0 ** -np.linspace(0.0, 4.0, D)
    if kind == "one side":
        return 5.0 + rng.uniform(size=(n, D))
    if kind == "deficient":
        return rng.normal(size=(n, max(D // 2, 1))) @ rng.normal(size=(max(D // 2, 1), D))
    if kind == "few":
        return np.repeat(rng.normal(size=(2, D)), n // 2, axis=0)
    raise AssertionError(kind)


KINDS = ["normal", "sphere", "heavy", "scaled", "one side", "deficient", "few"]


def leverage(X, shares):
    """||x||^2 in the pseudo-inverse of Gamma, through orthonormal coordinates of the span."""
    _, singular, V = np.linalg.svd(X, full_matrices=False)
    Z = X @ V[singular > 1e-10 * singular[0]].T
    return np.einsum("ij,ij->i", Z, np.linalg.solve((Z * shares[:, None]).T @ Z, Z.T).T)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "D"), [(40, 1), (30, 2), (200, 5), (500, 20), (400, 60), (8, 20)])
@pytest.mark.parametrize("seed", range(2))
def test_both_inequalities_of_107(kind, n, D, seed):
    X = rows(kind, n, D, seed)
    shares, r = near_optimal_design(X), np.linalg.matrix_rank(X)
    assert np.linalg.matrix_rank(X[shares > 0.0]) == r
    assert np.all(shares >= 0.0)
    assert_allclose(shares.sum(), 1.0)
    assert leverage(X, shares).max() <= 2.0 * r * (1.0 + 1e-9)
    assert np.count_nonzero(shares) <= min(n, support_bound(r))
    # What the guarantee counts: r rows, and as many steps as there is gain for.
    assert np.count_nonzero(shares) <= r + r * math.log(r) / (math.log(2.0) - 0.5)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("D", [2, 3, 4])
def test_with_a_factor_near_1_it_is_the_optimum_of_another_solver(seed, D):
    X = rows("normal", 12, D, seed)

    def loss(w):  # convex; its slopes are the leverages
        return -np.linalg.slogdet((X * w[:, None]).T @ X)[1], -leverage(X, w)

    best = minimize(
        loss, np.full(12, 1 / 12), jac=True, method="SLSQP", bounds=[(0.0, 1.0)] * 12,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1.0}, options={"ftol": 1e-12},
    )  # fmt: skip
    assert best.success
    shares = near_optimal_design(X, factor=1.0 + 1e-4)
    reached = np.linalg.slogdet((X * shares[:, None]).T @ X)[1]
    assert -best.fun - D * 1e-4 <= reached <= -best.fun + D * 1e-4


def test_known_optima():
    # Orthogonal directions share alike; on an interval the ends and the middle of a parabola do.
    assert_allclose(near_optimal_design(np.diag([3.0, 0.1, 50.0])), 1 / 3)
    x = np.linspace(-1.0, 1.0, 41)
    parabola = np.column_stack([np.ones(41), x, x**2])
    shares = near_optimal_design(parabola, factor=1.0 + 1e-3)
    assert_allclose(shares[[0, 20, 40]], 1 / 3, atol=0.01)


def test_the_design_does_not_depend_on_the_units_of_the_features():
    X = rows("normal", 50, 4, 0)
    mixed = X @ np.random.default_rng(1).normal(size=(4, 4))
    for other in (1e150 * X, 1e-150 * X, mixed):
        assert leverage(other, near_optimal_design(other)).max() <= 8.0
    assert_allclose(near_optimal_design(1e150 * X), near_optimal_design(X))


@pytest.mark.parametrize("kernel", [RBF(2.0), Matern52(3.0)], ids=repr)
@pytest.mark.parametrize("error", [0.1, 1e-4])
def test_parts_of_a_newton_basis(kernel, error):
    domain = Box([-5, -5], [5, 5]).grid(12)
    X = NewtonBasis.of(kernel, domain, error).features
    for kept in (slice(None), slice(40, 60), slice(7, 8)):
        rank = np.linalg.matrix_rank(X[kept])
        most = leverage(X[kept], near_optimal_design(X[kept])).max()
        assert most <= 2.0 * rank


def test_the_bound_on_the_support():
    assert support_bound(20) == math.ceil(80 * (math.log(math.log(20)) + 18))
    bounds = [support_bound(D) for D in range(1, 50)]
    assert bounds[:2] == [72, 144]
    assert bounds == sorted(bounds)


def test_what_has_no_design_is_refused():
    with pytest.raises(ValueError, match="not zero"):
        near_optimal_design(np.zeros((3, 2)))
    with pytest.raises(ValueError, match=r"above 1, got 1\.0"):
        near_optimal_design(np.eye(2), factor=1.0)
    with pytest.raises(ValueError, match="at least 1 dimension"):
        support_bound(0)


@pytest.mark.parametrize("share", [None, 1e-4, 0.05])
@pytest.mark.parametrize("epoch", [0, 3])
@pytest.mark.parametrize("kept", [np.arange(144), np.array([3, 50, 51, 140]), np.array([9])])
def test_an_epoch_has_the_leverage_and_the_length_that_are_promised(share, epoch, kept):
    domain = Box([-5, -5], [5, 5]).grid(12)
    basis = NewtonBasis.of(RBF(3.0), domain, 0.05)
    design = NearOptimal(basis, share)
    active = np.zeros(144, dtype=bool)
    active[kept] = True
    plan = design(Prior(RBF(3.0), 0.1), domain, active, epoch)
    D, m = basis.features.shape[1], support_bound(basis.features.shape[1]) * 2**epoch
    assert active[plan.arms].all()
    assert len(plan.arms) <= design.support
    alpha = 1.0 / design.support if share is None else share
    assert plan.plays.min() >= alpha * m
    assert m <= plan.plays.sum() <= m * (1.0 + alpha * design.support) + design.support
    plays = np.zeros(144)
    plays[plan.arms] = plan.plays
    assert leverage(basis.features[kept], plays[kept]).max() <= 2.0 * D / m * (1.0 + 1e-9)


def test_where_f_is_known_something_is_played():
    domain = Finite(np.array([[0.0], [2.0]]))
    design = NearOptimal(NewtonBasis.of(Linear(), domain, 0.1))
    plan = design(Prior(Linear(), 1.0), domain, np.array([True, False]), 1)
    assert (plan.arms.tolist(), plan.plays.tolist()) == ([0], [144])


def test_a_design_for_another_domain_or_without_a_share_is_refused():
    domain = Finite(np.array([[0.0], [2.0]]))
    basis = NewtonBasis.of(Linear(), domain, 0.1)
    with pytest.raises(ValueError, match="on the domain of the learner"):
        NearOptimal(basis)(Prior(Linear(), 1.0), Finite(domain.points), np.ones(2, bool), 0)
    with pytest.raises(ValueError, match=r"in \(0, 1\), got 1\.0"):
        NearOptimal(basis, 1.0)
