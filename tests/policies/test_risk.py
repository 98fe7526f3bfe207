"""What a trial may give where trials fail: gradients, and regions told from failure at random."""

import itertools
import math

import numpy as np
import pytest

from stoic import Box, recipes
from stoic.kernels import RBF
from stoic.learner import Learner
from stoic.models.feasibility import Feasibility
from stoic.policies.base import View
from stoic.policies.risk import Chance, Outages, Risky, at_risk

BOX = Box([0.0, 0.0], [1.0, 1.0])
RNG = np.random.default_rng(0)
YES, NO = RNG.uniform([0, 0], [0.6, 1], (9, 2)), RNG.uniform([0.5, 0], [1, 1], (7, 2))
REGION = Feasibility.condition(RBF(0.4), 0.1, YES, NO)
TOLD = Feasibility.condition(RBF(0.3), 0.1, YES, NO[:3])


class Hill:
    """log(0.1) - |x - 0.5|^2."""

    def __call__(self, x):
        return math.log(0.1) - ((x - 0.5) ** 2).sum(axis=1)

    def with_gradient(self, x):
        return self(x), -2.0 * (x - 0.5)


def chance_of(fails, seed, known=()):
    """By 30 points of a square."""
    agent = Learner(BOX, recipes.robust(), seed=0)
    rng = np.random.default_rng(seed)
    for x in BOX.spread(30, rng):
        bad = fails(x, rng)
        agent.tell(x, np.nan if bad else 0.0)
    for x in known:
        agent.tell(x, failed="infeasible")
    view: View = agent._view(BOX)
    return Chance.of(view)


@pytest.mark.parametrize("otherwise", [0.7, TOLD])
@pytest.mark.parametrize("least", [1e-100, 0.01])
def test_gradients_are_those_of_finite_differences(otherwise, least):
    chance = Chance(REGION, otherwise, 0.6, 0.9, 3)
    surface = Risky(Hill(), chance, 0.05, least)
    at, h = BOX.sample(60, np.random.default_rng(1)), 1e-6
    at = at[np.abs(surface(at) - math.log(least)) > 0.1]
    p, _ = chance.with_gradient(at)
    at = at[p < 0.999]
    assert len(at) > 20
    for function in (chance, surface):
        value, slope = function.with_gradient(at)
        np.testing.assert_allclose(value, function(at), rtol=1e-12)
        for j in range(2):
            step = h * np.eye(2)[j]
            difference = (function(at + step) - function(at - step)) / (2.0 * h)
            np.testing.assert_allclose(slope[:, j], difference, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("cost", [0.0, 0.05, 1.0])
def test_it_orders_points_as_the_expected_gain_less_the_cost_does(cost):
    chance = Chance(REGION, 1.0, 1.0, 1.0, 1)
    at = BOX.sample(200, np.random.default_rng(2))
    gain, p = np.exp(Hill()(at)), chance(at)
    utility = p * gain - (1.0 - p) * cost
    order = np.argsort(utility)
    apart = np.diff(utility[order]) > 1e-12
    assert (np.diff(Risky(Hill(), chance, cost, 1e-100)(at)[order])[apart] > 0.0).all()


def test_without_failures_nothing_is_weighed():
    surface = Hill()
    assert chance_of(lambda x, rng: False, 0) is None
    assert at_risk(surface, None, 1.0) is surface


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_failures_at_random_leave_all_of_the_domain(rate):
    """Medians of 20 seeds."""
    x = BOX.sample(200, np.random.default_rng(3))
    chances = [chance_of(lambda x, rng: rng.random() < rate, seed) for seed in range(20)]
    assert np.median([chance.weight for chance in chances if chance]) < 0.15
    assert np.median([np.quantile(chance(x), 0.05) for chance in chances if chance]) > 0.85


@pytest.mark.parametrize(
    "fails",
    [
        lambda x, rng: x[0] > 0.5,
        lambda x, rng: x[0] > 0.8,
        lambda x, rng: x.sum() > 1.0,
        lambda x, rng: np.linalg.norm(x - 0.5) < 0.35,
    ],
    ids=["half", "a fifth", "diagonal", "disc"],
)
def test_failures_in_a_region_rule_it_out(fails):
    x = BOX.sample(200, np.random.default_rng(3))
    bad = np.array([fails(point, None) for point in x])
    chances = [chance_of(fails, seed) for seed in range(20)]
    assert np.median([chance.weight for chance in chances]) > 0.9
    assert np.median([np.median(chance(x[bad])) for chance in chances]) < 0.2
    assert np.median([np.median(chance(x[~bad])) for chance in chances]) > 0.9


def test_what_is_known_to_be_infeasible_needs_no_evidence():
    chance = chance_of(lambda x, rng: False, 0, known=[[0.9, 0.9], [0.95, 0.9]])
    assert chance.weight == 1.0
    assert chance(np.array([[0.92, 0.9]]))[0] < 0.6


def outages(text):
    return Outages.of(np.array([letter == "+" for letter in text]))


def test_the_order_of_results_and_failures_is_that_of_a_chain():
    """A literal version, trial by trial: a state is left with a probability of its own."""
    text = "++-+" + 12 * "-" + "+++++"
    share = (text.count("+") + 1.0) / (len(text) + 2.0)
    counts, log = {"+": [1.0, 9.0], "-": [1.0, 9.0]}, math.log(share)
    for before, after in itertools.pairwise(text):
        left, stayed = counts[before]
        log += math.log((left if after != before else stayed) / (left + stayed))
        counts[before][after == before] += 1.0
    flat = sum(math.log(share if letter == "+" else 1.0 - share) for letter in text)
    found = outages(text)
    assert found.evidence == pytest.approx(log - flat)
    left, stayed = counts["+"]
    assert found.now == pytest.approx(stayed / (left + stayed))


def test_outages_are_long_and_their_failures_in_a_row():
    assert outages("+" + "-" * 9 + "+" * 9) is None
    assert outages("+-" * 30) is None
    assert outages("-" * 10 + "+" * 10).evidence > 5.0
    rng = np.random.default_rng(0)
    by_chance = "".join(rng.choice(["+", "-"], 100, p=[0.1, 0.9]))
    assert outages(by_chance).evidence < -1.0
    assert outages("+" + "-" * 10).now < 0.2
    assert outages("+" + "-" * 100).evidence < 0.0
    long = "".join(rng.choice(["+", "-"], 3000, p=[0.3, 0.7]))
    assert outages(long).evidence < -5.0
    assert outages("-" * 10 + "+").now > 0.8


def test_before_the_first_result_a_few_failures_may_be_an_outage():
    assert outages("-" * 5 + "+" * 5).prior > outages("+" + "-" * 10).prior
    assert outages("-" * 5 + "+" * 5).evidence > 2.0
    assert outages("---+-+--+-").evidence < 0.0
    x, worked = np.random.default_rng(0).random((10, 2)), np.arange(10) > 4
    none = np.zeros((0, 2))
    begun = Chance.learned(BOX, x, worked, none, None)
    order = [5, 6, *range(5), 7, 8, 9]  # the same labels
    later = Chance.learned(BOX, x[order], worked[order], none, None)
    assert begun.region.evidence == pytest.approx(later.region.evidence)
    assert begun.weight < 0.1 * later.weight
    # A failure after that is no reason to stay where it worked
    assert begun.share == begun.region.share
    again = Chance.learned(
        BOX, np.append(x, [[0.5, 0.5]], axis=0), np.append(worked, False), none, None
    )
    assert again.share < again.region.share
