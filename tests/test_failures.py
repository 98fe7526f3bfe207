"""What gave no result: told, remembered, and taken into account by whatever policy."""

import numpy as np
import pytest

from stoic import Box, Finite, GaussianProcess, Learner, Prior, recipes
from stoic.confidence import Fixed
from stoic.data import FAILURES
from stoic.kernels import RBF
from stoic.models.feasibility import Feasibility
from stoic.policies import UCB, Band, Initial, UpperConfidenceBound
from stoic.policies.base import Feasible
from stoic.recipes import Parts

BOX = Box([0.0, 0.0], [1.0, 1.0])
PRIOR = Prior(RBF(0.25), 0.01)


def learner(domain=BOX, **settings):
    return Learner(domain, Parts(GaussianProcess(PRIOR), Fixed(2.0), UCB(**settings)), seed=0)


def f(x):
    return float(-np.sum((x - [0.85, 0.5]) ** 2))


def hill(x):
    return -float(np.sum((x - [0.3, 0.6]) ** 2))


def infeasible(x):
    """The best settings are beyond what can be built."""
    return x[0] > 0.6


@pytest.mark.parametrize("domain", [BOX, BOX.grid(21)], ids=["box", "grid"])
def test_what_is_infeasible_is_avoided_and_its_border_is_found(domain):
    one, wasted = learner(domain), []
    for t in range(60):
        choice = one.ask()
        if infeasible(choice.x):
            one.tell(choice.x, failed="infeasible")
            wasted.append(t)
        else:
            one.tell(choice.x, f(choice.x))
    assert len(one.failures) == len(wasted) == 60 - len(one)
    assert sum(t >= 30 for t in wasted) <= 15
    best = one.recommend()
    assert not infeasible(best.x)
    assert best.x[0] > 0.45
    assert abs(best.x[1] - 0.5) < 0.15
    assert best.model_x[0] < 0.75


def test_without_the_kind_the_same_campaign_keeps_asking_there():
    """What the classifier is for: a crash told as nan teaches an ordinary process nothing."""
    one, wasted = learner(), 0
    for _ in range(40):
        choice = one.ask()
        bad = infeasible(choice.x)
        one.tell(choice.x, np.nan if bad else f(choice.x))
        wasted += bad
    assert wasted > 20


def test_a_transient_failure_says_nothing_and_may_be_asked_again():
    one, other = (learner(BOX.grid(21)) for _ in range(2))
    for _ in range(5):
        choice = one.ask()
        one.tell(choice.x, failed="transient")
        assert np.array_equal(one.ask().x, choice.x)
        one.tell(choice.x, f(choice.x))
        other.tell(other.ask().x, f(choice.x))
    np.testing.assert_array_equal(one.observations.x, other.observations.x)
    assert one.failures.kinds == ("transient",) * 5
    assert one.pending == []


@pytest.mark.parametrize("domain", [BOX, BOX.grid(21)], ids=["box", "grid"])
def test_a_third_transient_failure_in_a_row_is_no_accident(domain):
    one = learner(domain)
    x, beside = np.array([0.5, 0.5]), np.array([0.5, 0.55])
    for point in (x, beside, x):
        one.tell(point, failed="transient")
    one.tell(x, 0.0)  # it can be run after all
    for point in (x, beside, x, x):
        one.tell(point, failed="transient")
    assert one.failures.kinds == ("transient",) * 6 + ("infeasible",)
    assert Learner(domain, seed=0).failures.kinds == ()


@pytest.mark.parametrize("domain", [BOX, BOX.grid(21)], ids=["box", "grid"])
def test_failures_in_a_row_at_three_places_are_the_machines_until_it_works_again(domain):
    one = learner(domain)
    a, b, c, other = np.array([[0.5, 0.5], [0.5, 0.55], [0.1, 0.1], [0.9, 0.9]])
    for point in (a, a, a, b, b, b):
        one.tell(point, failed="transient")
    in_a_row = ("transient", "transient", "infeasible") * 2
    assert one.failures.kinds == in_a_row
    one.tell(c, failed="transient")
    assert one.failures.kinds == (*in_a_row, "transient")  # something else has to be tried
    one.tell(other, 0.0)
    assert one.failures.kinds == ("transient",) * 7
    for point in (a, a):  # after what counts once
        one.tell(point, failed="transient")
    assert one.failures.kinds == ("transient",) * 8 + ("infeasible",)


def searched_through_an_outage(seed, kind, rounds, f):
    """Play rounds of which 14 to 39 fail; return the points of the others, in their order."""
    one, tried = Learner(BOX, seed=seed), []
    for t in range(rounds):
        x = one.ask().x
        if 14 <= t < 40:
            one.tell(x, failed=kind)
        else:
            tried.append(x)
            one.tell(x, f(x))
    return tried


def different(points, digits):
    return len({tuple(x.round(digits)) for x in points})


@pytest.mark.parametrize("seed", [0, 4])
def test_a_search_goes_on_after_an_outage(seed):
    tried = searched_through_an_outage(seed, "transient", 52, f)
    assert different(tried[-12:], 3) > 6


@pytest.mark.parametrize("seed", [0, 2])
def test_failures_before_anything_worked_may_have_been_an_outage(seed):
    one, best = Learner(BOX, seed=seed), -np.inf
    for t in range(35):
        x = one.ask().x
        y = np.nan if t < 15 else hill(x)
        one.tell(x, y)
        best = max(best, y) if t >= 15 else best
    assert best > -0.01


@pytest.mark.parametrize("seed", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_a_search_goes_on_where_what_counts_as_infeasible_was_not(seed):
    tried = searched_through_an_outage(seed, "bad", 64, hill)
    assert different(tried[-24:], 4) >= 5


def played_to_an_edge(rounds, seed, kind):
    """Play a function that gets better towards an edge, beyond which everything fails."""
    one, asked = Learner(Box([0.0, -3.0], [1.0, 3.0]), seed=seed), []
    for _ in range(rounds):
        x = one.ask().x
        asked.append(tuple(x))
        if x[1] < -0.8:
            one.tell(x, failed=kind)
        else:
            one.tell(x, -((x[0] - 0.3) ** 2) - (x[1] + 1.0) ** 2)
    return one, asked


def test_a_setting_that_takes_down_its_machine_is_not_queried_for_ever():
    one, asked = played_to_an_edge(25, 0, "transient")
    assert max(map(asked.count, asked)) == 3
    assert one.recommend().x[1] < 0.0


def test_a_setting_that_fails_because_it_is_bad_is_kept_away_from():
    bad, infeasible = (learner() for _ in range(2))
    x = BOX.spread(12, np.random.default_rng(0))
    for one, kind in ((bad, "bad"), (infeasible, "infeasible")):
        one.tell(x, [f(point) for point in x])
        first = one.ask()
        one.tell(first.x, failed=kind)
        assert np.linalg.norm(one.ask(pending=[]).x - first.x) > 0.05
    np.testing.assert_array_equal(bad.ask().x, infeasible.ask().x)


@pytest.mark.parametrize("recipe", recipes.SEQUENTIAL)
def test_every_recipe_takes_every_kind_of_failure(recipe):
    one = Learner(BOX, recipe(policy=Initial(UCB(), 4)), seed=1)
    for t in range(12):
        choice = one.ask()
        if t % 3 == 2:
            one.tell(choice.x, failed=FAILURES[t // 3 % 3])
        else:
            one.tell(choice.x, f(choice.x))
    assert len(one) == 8
    assert len(one.failures) == 4
    assert np.isfinite(one.recommend().mean)


def test_failures_before_any_result():
    one = learner()
    for kind in FAILURES:
        one.tell(one.ask().x, failed=kind)
    assert np.isfinite(one.ask().x).all()
    with pytest.raises(ValueError, match="There is no result yet"):
        one.recommend()


def test_either_a_result_or_a_kind_of_failure():
    one = learner()
    for arguments in ({}, {"y": 1.0, "failed": "bad"}):
        with pytest.raises(ValueError, match="Tell a result y, or why"):
            one.tell([0.5, 0.5], **arguments)
    with pytest.raises(ValueError, match="one of transient, infeasible, bad, got 'broken'"):
        one.tell([0.5, 0.5], failed="broken")
    with pytest.raises(ValueError, match="finite"):
        one.tell([0.5, np.nan], failed="bad")
    assert len(one.failures) == 0
    one.tell([[0.5, 0.5], [0.1, 0.2]], failed="bad")
    assert one.failures.of("bad").shape == (2, 2)
    assert one.failures.of("infeasible").shape == (0, 2)


@pytest.mark.parametrize("floor", [None, -0.3])
def test_the_weighed_surface_has_the_gradient_of_its_heights(floor):
    rng = np.random.default_rng(3)
    yes, no = rng.uniform([0, 0], [0.6, 1], (9, 2)), rng.uniform([0.5, 0], [1, 1], (7, 2))
    classifier = Feasibility.condition(RBF(0.4), 0.1, yes, no)
    one = learner()
    one.tell(yes, [f(x) for x in yes])
    posterior = one.posterior
    surface = Feasible(UpperConfidenceBound(Band(posterior, 2.0)), classifier, floor)
    at, h = BOX.sample(40, rng), 1e-6
    p = classifier(at)
    assert (p < 0.79).any()
    assert (p > 0.81).any()
    at = at[np.abs(p - 0.8) > 0.01]  # there is a kink at 0.8
    height, slope = surface.with_gradient(at)
    np.testing.assert_allclose(height, surface(at), rtol=1e-12)
    for j in range(2):
        step = h * np.eye(2)[j]
        difference = (surface(at + step) - surface(at - step)) / (2.0 * h)
        np.testing.assert_allclose(slope[:, j], difference, atol=1e-5)


def test_a_result_that_is_revised_to_none_is_no_sign_of_feasibility():
    one = learner()
    for x in ([0.2, 0.5], [0.5, 0.5], [0.58, 0.5]):
        one.tell(x, 0.0)
    one.tell([0.9, 0.5], failed="infeasible")
    at = np.array([[0.58, 0.5]])
    before = one.surrogate.feasibility()(at)[0]
    with pytest.raises(ValueError, match="3 observations, and no number True"):
        one.revise(True, 0.05)
    with pytest.raises(ValueError, match="nan where there is none: got None"):
        one.revise(2, None)
    one.revise(2, np.nan)
    assert one.surrogate.feasibility()(at)[0] < before


def test_the_mean_of_a_recommendation_is_that_of_the_model():
    one = learner()
    for x in ([0.1, 0.5], [0.3, 0.5], [0.5, 0.5], [0.58, 0.5]):
        one.tell(x, f(np.array(x)))
    for x in ([0.7, 0.5], [0.65, 0.4], [0.65, 0.6], [0.9, 0.5]):
        one.tell(x, failed="infeasible")
    best = one.recommend()
    mean, _ = one.posterior.predict(best.model_x[None])
    assert best.model_mean == pytest.approx(mean[0])


def test_a_threshold_that_is_reached_stays_so_after_failures_elsewhere():
    domain = Finite(np.linspace(0.0, 1.0, 51))
    recipe = recipes.advers_2(prior=Prior(RBF(0.2), 1e-4), threshold=0.9)
    one = Learner(domain, recipe, seed=0)
    for row in range(0, 51, 5):
        one.tell(domain.points[row], float(np.sin(3.0 * domain.points[row, 0])))
    x = one.ask(pending=[]).x
    one.tell(domain.points[:2], failed="infeasible")
    choice = one.ask(pending=[])
    assert choice.notes["reachable"]
    assert choice.x == pytest.approx(x)


@pytest.mark.parametrize("seed", range(3))
def test_a_bad_corner_is_not_asked_again_and_again(seed):
    _, asked = played_to_an_edge(20, seed, "bad")
    assert len(set(asked)) == 20
