"""The probability that constraints hold, and learners that weigh it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from stoic import Box, Learner, recipes
from stoic.models.constraints import ConstraintHistory, Constraints, _compressed
from stoic.models.feasibility import Feasibility
from stoic.posteriors.mixture import MixturePosterior

BOX = Box([0.0, -2.0], [1.0, 2.0])


def limit(x):
    return x[:, 0] + 0.5 * x[:, 1] - 0.6


def begun(n=14, absurd=None, domain=BOX, seed=0):
    """A learner of x0 + x1, with a limit; one value of it may be absurd."""
    learner = Learner(domain, seed=seed)
    x = domain.spread(n, np.random.default_rng(seed))
    values = limit(x)
    if absurd is not None:
        values[absurd] = 50.0
    learner.tell(x, x.sum(axis=1), constraints={"limit": values})
    return learner, x


def test_the_probability_is_that_of_its_posteriors():
    learner, _ = begun()
    found = learner.constraints()
    x = BOX.sample(50, np.random.default_rng(1))
    expected = np.ones(50)
    for posterior in found.posteriors:
        widening = getattr(posterior, "widening", 1.0)
        if isinstance(posterior, MixturePosterior):
            parts = (part.predict(x) for part in posterior.parts)
            each = [norm.cdf(-mean / (widening * std)) for mean, std in parts]
            expected *= posterior.weights @ np.array(each)
        else:
            mean, std = posterior.predict(x)
            expected *= norm.cdf(-mean / std)
    np.testing.assert_allclose(found(x), expected, rtol=1e-8, atol=1e-300)
    right = (found(x) > 0.5) == (limit(x) <= 0.0)
    assert right[np.abs(limit(x)) > 0.1].all()


@pytest.mark.parametrize("absurd", [None, 3])
def test_gradients_are_those_of_the_values(absurd):
    learner, _ = begun(absurd=absurd)
    for found in (learner.constraints(), learner.surrogate.constraints()):
        x = BOX.sample(6, np.random.default_rng(2))
        log, slope = found.log_with_gradient(x)
        np.testing.assert_allclose(log, found.log(x), rtol=1e-7, atol=1e-9)
        step = 1e-4  # smaller ones round: the logarithms are -1e5, from variances that cancel
        for k in range(2):
            e = step * np.eye(2)[k]
            numeric = (found.log(x + e) - found.log(x - e)) / (2.0 * step)
            np.testing.assert_allclose(slope[:, k], numeric, rtol=1e-3, atol=1e-4)
        p, by_x = found.with_gradient(x)
        np.testing.assert_allclose(by_x, p[:, None] * slope)


@pytest.mark.parametrize("size", [1e3, 1e8, 1e12])
def test_slopes_far_below_zero(size):
    # d log Phi(z) / dz is -z - 1 / z + ... far below 0: log P is -(mean / std)^2 / 2
    learner = Learner(Box([0.0], [1.0]), seed=0)
    x = np.linspace(0.0, 1.0, 12)[:, None]
    learner.tell(x, x[:, 0], constraints={"limit": size * (1.0 + x[:, 0])})
    found = Constraints((learner.surrogate.constraints().posteriors[0],), np.empty((0, 1)))
    at = np.array([[0.45]])
    log, slope = found.log_with_gradient(at)
    step = 1e-4
    numeric = (found.log(at + step) - found.log(at - step)) / (2.0 * step)
    np.testing.assert_allclose(slope[0], numeric, rtol=1e-2)
    assert log[0] < -100.0


def test_an_absurd_value_changes_little():
    right, x = begun()
    wrong, _ = begun(absurd=int(np.argmin(np.abs(x).sum(axis=1))))
    p, q = right.constraints()(x), wrong.constraints()(x)
    inside = limit(x) < -0.2
    assert (q[inside] > 0.9).mean() > 0.8
    assert (q[limit(x) > 0.2] < 0.1).all()
    assert (p[inside] > 0.9).all()


@pytest.mark.parametrize("domain", [BOX, BOX.grid(9)], ids=["box", "grid"])
def test_choices_and_recommendations_are_feasible(domain):
    learner, _ = begun(domain=domain)
    for _ in range(8):
        choice = learner.ask()
        held = {"limit": limit(choice.x[None])}
        learner.tell(choice.x, choice.x.sum(), choice=choice, constraints=held)
    found = learner.recommend()
    assert limit(found.x[None])[0] <= 1e-9
    assert found.notes["feasible"] >= 0.5
    assert found.x.sum() >= 1.0  # at best 1.2 at (0, 1.2), or 1 on the grid; 3 without the limit
    assert limit(found.model_x[None])[0] < 0.1


def test_a_batch_spreads_out():
    learner, _ = begun()
    x = np.array([choice.x for choice in learner.ask_batch(4)])
    apart = np.abs((x[:, None] - x[None]) / BOX.widths).max(axis=2) + np.eye(4)
    assert apart.min() > 1e-4
    assert (limit(x) < 0.3).sum() >= 2


def test_what_a_learner_cannot_weigh_is_refused_and_not_stored():
    learner = Learner(BOX, recipes.gp_ucb())
    with pytest.raises(ValueError, match="does not weigh constraints"):
        learner.tell([0.5, 0.5], 1.0, constraints={"limit": 0.1})
    assert len(learner) == 0
    learner = Learner(BOX)
    with pytest.raises(ValueError, match="2 inputs but 1 values of the constraint 'limit'"):
        learner.tell([[0.5, 0.5], [0.1, 0.1]], [1.0, 2.0], constraints={"limit": 0.1})
    assert len(learner) == 0
    assert learner.constraints() is None


def test_constraints_alone_are_those_of_a_rule():
    """However far apart they are; and neither a result nor a failure."""
    learner = Learner(BOX, seed=0)
    x = BOX.spread(14, np.random.default_rng(0))
    values = np.exp(8.0 * limit(x)) - 1.0  # up to thousands
    inside = values <= 0.0
    learner.tell(x[inside], x[inside].sum(axis=1), constraints={"rule": values[inside]})
    for point, value in zip(x[~inside], values[~inside], strict=True):
        learner.tell(point, constraints={"rule": value})
    assert (len(learner), len(learner.failures)) == (inside.sum(), 0)
    assert learner.constraint_trust()["rule"].min() > 0.9
    learner.tell(x[0], 1.0, constraints={"rule": values[0], "noisy": 1.0})
    np.testing.assert_array_equal(learner.rules()(x) > 0.5, inside)
    assert begun()[0].rules() is None
    learner = Learner(BOX, seed=0)
    learner.tell(x[inside], x[inside].sum(axis=1), constraints={"rule": values[inside]})
    learner.tell(x[~inside], constraints={"rule": values[~inside]})
    np.testing.assert_array_equal(learner.constraints()(x) > 0.5, inside)
    chosen = learner.ask()
    learner.tell(chosen.x, constraints={"rule": 1.0})
    assert not len(learner.pending)
    for given in ({"rule": -1.0}, {"rule": np.nan}, {}):
        with pytest.raises(ValueError, match=r"[Tt]ell a result y"):
            learner.tell(x[0], constraints=given)
    with pytest.raises(ValueError, match=r"[Tt]ell a result y"):  # of each
        learner.tell(x[:2], constraints={"rule": [1.0, -1.0]})
    assert len(learner.surrogate.outputs._results["rule"][1]) == len(x) + 1


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_large_sizes_are_compressed_and_small_ones_are_not(unit):
    values = unit * np.array([-2.0, -1.0, -0.5, 1e-6, 1.0, 1e3, 1e9])
    found = _compressed(values)
    np.testing.assert_array_equal(np.sign(found), np.sign(values))
    assert (np.diff(found) > 0.0).all()
    np.testing.assert_allclose(found[:5], values[:5], rtol=0.02)
    assert found[-1] < 200.0 * unit
    alone = np.array([0.0, np.nan])
    np.testing.assert_array_equal(_compressed(alone), alone)


def test_an_input_without_a_value_is_no_evidence():
    learner, x = begun()
    before = learner.constraints()(x)
    learner.tell([0.5, 0.5], 1.0)
    np.testing.assert_array_equal(learner.constraints()(x), before)
    learner.tell([0.4, 0.4], failed="transient", constraints={"limit": -0.01})
    assert isinstance(learner.constraints(), Constraints)
    assert learner.constraints().posteriors[0].n == 15


@pytest.mark.parametrize("satisfied", [0.0, -1.0, -np.inf])
def test_a_constraint_of_two_values_is_classified(satisfied):
    rng = np.random.default_rng(0)
    history = ConstraintHistory(BOX, recipes.robust()(BOX).model)
    x = BOX.sample(40, rng)
    values = np.where(limit(x) > 0.0, 3.0, satisfied)
    history.tell(x[:1], {"limit": values[:1]})
    history.tell(x[1:], {"limit": values[1:]})
    found, z = history(), BOX.sample(200, rng)
    assert not found.posteriors
    expected = Feasibility.learned(BOX, x[values <= 0.0], x[values > 0.0])
    np.testing.assert_allclose(found(z), expected(z), rtol=1e-12)
    right = found.hold(z) == (limit(z) <= 0.0)
    assert right[np.abs(limit(z)) > 0.3].all()
    assert (history.trust()["limit"][np.isfinite(values)] == 1.0).all()
    slope, h = found.log_with_gradient(z)[1], 1e-6
    for k in range(2):
        step = h * np.eye(2)[k]
        between = (found.log(z + step) - found.log(z - step)) / (2.0 * h)
        np.testing.assert_allclose(slope[:, k], between, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.fantasise(z[:2])(z), found(z))


def test_a_classified_constraint_is_weighed_beside_one_that_is_modelled():
    learner, x = begun(30)
    one = learner.constraints()
    learner, x = begun(30)
    learner = Learner(BOX, seed=0)
    flag = np.where(x[:, 0] < 0.5, 0.0, 1.0)
    learner.tell(x, x.sum(axis=1), constraints={"limit": limit(x), "flag": flag})
    both, z = learner.constraints(), BOX.sample(100, np.random.default_rng(3))
    (classifier,) = both.classifiers
    np.testing.assert_allclose(both(z), one(z) * classifier(z), rtol=1e-10)
    assert (both.hold(z) == (one.hold(z) & (classifier(z) >= 0.5))).all()
    safe = both.safest(x)
    assert safe.any()
    assert (safe == ((one(x) >= 0.9) & (classifier(x) >= 0.5))).all()


@pytest.mark.parametrize(
    ("values", "classified"),
    [
        ([1.0, 1.0, 1.0], True),  # nothing satisfies it so far
        ([0.0, 0.0, 0.0], False),  # of satisfied ones nothing is asked
        ([0.3, -0.2], False),  # may have more digits than these
        ([0.0, 1.0, np.nan, 1.0], True),
        ([0.0, 1.0, 0.0, 2.0], False),
        ([0.0, 0.0, 0.4, 0.3], False),
    ],
)
def test_which_constraints_are_classified(values, classified):
    history = ConstraintHistory(BOX, recipes.robust()(BOX).model)
    x = BOX.sample(len(values), np.random.default_rng(1))
    history.tell(x, {"c": np.array(values)})
    assert len(history().classifiers) == classified
    history.tell(x[:1] + 0.01, {"c": np.array([0.7])})
    assert len(history().classifiers) == 0 or set(values) == {0.0}
