import copy
import pickle
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import literal
from stoic import recipes, testing
from stoic.confidence import Fixed, Schedule
from stoic.data import Choice
from stoic.defences import AdaptivePlateau, Plateau, Trust
from stoic.domains import Box, Finite, Lattice
from stoic.kernels import Matern52, Scaled
from stoic.learner import Learner
from stoic.models import GaussianProcess, LeaveOneOutGP
from stoic.objectives import MultiLearner
from stoic.pending import WaitingError
from stoic.policies import UCB, Initial, Policy, VerifiedImprovement
from stoic.posteriors import Prior
from stoic.posteriors.fitting import Fitting
from stoic.recipes import Parts

BOX = Box([10.0, -1.0], [14.0, 1.0], candidates=64, climbs=3)
GRID = Box([10.0, -1.0], [14.0, 1.0]).grid(8)
on_grid_and_box = pytest.mark.parametrize("domain", [GRID, BOX], ids=["grid", "box"])
PRIOR = Prior(Scaled(Matern52(np.array([1.0, 0.5])), 2.0), 0.1, 0.5)


def learner(domain=GRID, defence=None, prior=PRIOR, fitting=None, width=None, seed=0):
    model = GaussianProcess(prior, defence or Trust(), *([fitting] if fitting else []))
    return Learner(domain, Parts(model, width or Fixed(2.0), UCB()), seed=seed)


def value(x):
    return float(np.sin(2.0 * x[0]) + x[1])


def play(agents, rounds, lie=None):
    """The same campaign for several learners; asserts that they ask the same."""
    rng = np.random.default_rng(4)
    for t in range(rounds):
        choices = [agent.ask() for agent in agents]
        for other in choices[1:]:
            assert_array_equal(other.x, choices[0].x)
        y = value(choices[0].x) + 0.3 * rng.standard_normal()
        if lie is not None and t in lie:
            y = lie[t]
        for agent, choice in zip(agents, choices, strict=True):
            agent.tell(choice.x, y)


@on_grid_and_box
def test_it_keeps_the_contract(domain):
    for defence in (Trust(), Plateau(2.0, 1.0, 0.5), AdaptivePlateau(2.0)):
        testing.check_learner(lambda d=defence: learner(domain, d))


@on_grid_and_box
def test_its_posterior_is_the_textbook_one(domain):
    agent = learner(domain)
    rng = np.random.default_rng(0)
    x = domain.sample(30, rng)
    y = np.array([value(row) for row in x])
    noise = rng.uniform(0.05, 0.5, 30)
    agent.tell(x[:10], y[:10])
    agent.tell(x[10:29], y[10:29], noise[10:29])
    agent.ask()
    agent.tell(x[29], y[29], noise=0.7)
    noise[:10], noise[29] = PRIOR.noise, 0.7
    z = domain.sample(8, rng)
    mean, covariance = literal.posterior(PRIOR.kernel, x, y, noise, z, PRIOR.mean)
    assert_allclose(agent.posterior.predict(z)[0], mean, atol=1e-9)
    assert_allclose(agent.posterior.predict(z)[1] ** 2, np.diagonal(covariance), atol=1e-9)
    assert len(agent) == 30


@on_grid_and_box
def test_what_was_told_is_kept_as_it_was(domain):
    agent = learner(domain)
    x = domain.sample(150, np.random.default_rng(0))  # beyond the first room
    y = np.arange(150.0)
    y[[3, 70]] = [np.nan, -np.inf]
    agent.tell(x[0], y[0])
    agent.tell(x[1:100], y[1:100], 0.2)
    early = agent.observations
    agent.tell(x[100:], y[100:].tolist(), np.full(50, 0.3))
    assert_array_equal(agent.observations.x, x)
    assert_array_equal(agent.observations.observed, y)
    assert_array_equal(agent.observations.noise, np.repeat([np.nan, 0.2, 0.3], [1, 99, 50]))
    assert_array_equal(early.x, x[:100])
    x[:] = 0.0  # the caller's array is the caller's
    assert agent.observations.x[0, 0] != 0.0
    if domain is GRID:
        assert_array_equal(GRID.points[agent.observations.arms], agent.observations.x)


@on_grid_and_box
def test_impossible_input_is_refused_and_nothing_is_stored(domain):
    agent = learner(domain)
    x = domain.sample(3, np.random.default_rng(0))
    agent.tell(x, [1.0, 2.0, 3.0])
    agent.ask_batch(2)
    bad = x.copy()
    bad[1, 0] = np.nan
    never = np.datetime64("NaT", "s")
    for tell, message in (
        (lambda: agent.tell(bad, [1.0, 2.0, 3.0]), "must be finite, got .*nan.*an error in an inp"),
        (lambda: agent.tell([np.inf, 0.0], 1.0), "must be finite"),
        (lambda: agent.tell([10.0], 1.0), r"has 2 coordinates, got 1: pass shape \(2,\)"),
        (lambda: agent.tell([[10.0, 0.0, 0.0]], 1.0), "has 2 coordinates"),
        (lambda: agent.tell([[[10.0, 0.0]]], 1.0), "has 2 coordinates"),
        (lambda: agent.tell([99.0, 0.0], 1.0), "not one of the 64 points|outside"),
        (lambda: agent.tell(x, [1.0, 2.0]), "3 inputs but 2 results"),
        (lambda: agent.tell(x[0], [1.0, 2.0]), "1 inputs but 2 results"),
        (lambda: agent.tell(x[0], 1.0, noise=0.0), "noise variance is a positive number"),
        (lambda: agent.tell(x[0], 1.0, noise=-2.0), "noise variance is a positive number"),
        (lambda: agent.tell(x[0], 1.0, noise=np.inf), "noise variance is a positive number"),
        (lambda: agent.tell(x[0], never), "result is a number"),
        (lambda: agent.tell(x[0], np.timedelta64(90, "s")), "result is a number"),
        (lambda: agent.tell(x[0], [np.timedelta64(90, "s")]), "result is a number"),
        (lambda: agent.tell(x[0], np.array([never], object)), "result is a num"),
        (lambda: agent.tell(x[0], np.ma.array(np.arange(1), dtype="m8[s]")), "result is a num"),
        (lambda: agent.tell(x, [1, 2, 3], noise=[1.0, 1.0]), "3 results but 2 noise variances"),
        (lambda: agent.tell(x, [1, 2, 3], choice=[]), "3 inputs but 0 choices"),
        (lambda: agent.tell(x[0], 1.0, choice={"x": 1}), "answers a choice of ask, or None, got"),
        (lambda: agent.ask(context={1: [0.0, 0.5]}), "one finite value, got .0.0, 0.5"),
        (lambda: agent.ask(context={True: 0.5}), "numbered 0 to 1, got True"),
        (lambda: agent.tell(x, [1, 2, 3], censored=[True, False]), "for each of 3 results"),
        (lambda: agent.tell(x, [1, 2, 3], censored=[True]), "for each of 3 results"),
        (lambda: Learner(BOX, seed=np.random.RandomState(0)), "A seed is a whole number"),
        (lambda: agent.tell(x, [1, 2, 3], censored="yes"), "censored is True or False"),
        (lambda: agent.tell(x, [1, 2, np.inf], censored=[False, False, True]), "finite number"),
        (lambda: agent.recommend(width=np.nan), "width of a bound is a number >= 0"),
        (lambda: agent.recommend(width=-1.0), "width of a bound is a number >= 0"),
        (lambda: agent.recommend(width="2"), "width of a bound is a number >= 0, got '2'"),
        (lambda: agent.recommend(width=[2]), "width of a bound is a number >= 0"),
        (lambda: agent.ask(pending=[[99.0, 0.0]]), "not one of the 64 points|outside"),
        (lambda: agent.ask_batch(0), "at least one choice"),
        (lambda: agent.ask_batch(-3), "at least one choice"),
        (lambda: agent.ask(among=[]), "Nothing to choose among|smaller Box"),
    ):
        with pytest.raises(ValueError, match=message):
            tell()
        assert len(agent) == 3
        assert len(agent.pending) == 2
        assert_array_equal(agent.observations.observed, [1.0, 2.0, 3.0])


def test_some_of_several_results_are_bounds():
    one, other = learner(BOX), learner(BOX)
    x = BOX.sample(4, np.random.default_rng(0))
    one.tell(x, [1.0, 2.0, np.nan, 3.0], censored=[False, True, False, True])
    for row, y in enumerate([1.0, 2.0, np.nan, 3.0]):
        other.tell(x[row], y, censored=row in (1, 3))
    assert_array_equal(one.observations.censored, [False, True, False, True])
    assert_array_equal(one.observations.censored, other.observations.censored)
    assert_array_equal(one.ask().x, other.ask().x)


def test_a_part_must_be_a_part():
    box = learner(BOX)
    for part in (Box([0.0], [1.0]), Box([9.0, 0.0], [11.0, 1.0]), [3], GRID):
        with pytest.raises(ValueError, match=r"smaller Box|must be in the box"):
            box.ask(among=part)
    with pytest.raises(ValueError, match="rows 0 to 63"):
        learner(GRID).ask(among=[64])


@on_grid_and_box
def test_a_context_is_given_and_the_best_for_it_is_recommended(domain):
    agent = learner(domain)
    given = float(GRID.points[11, 1])
    choice = agent.ask(context={1: given})
    assert choice.x[1] == given
    x = domain.sample(20, np.random.default_rng(0))
    agent.tell(x, -((x[:, 0] / 10.0 - 0.4) ** 2))
    untried = agent.recommend(context={1: given + 0.0})
    assert untried.x[1] == untried.model_x[1] == given
    assert not (x == untried.x).all(axis=1).any() or (x[:, 1] == given).any()
    agent.tell(choice.x, 5.0)  # the first of this context on a box
    tried = agent.recommend(context={1: given})
    assert (agent.observations.x == tried.x).all(axis=1).any()
    assert tried.x[1] == given
    assert tried.lower <= tried.mean <= tried.upper
    with pytest.raises(ValueError, match=r"[cC]oordinate 1"):
        agent.ask(context={1: 1e3})
    if domain is GRID:
        rows = np.flatnonzero(GRID.points[:, 0] == GRID.points[0, 0])
        both = agent.ask(among=rows, context={1: given})
        assert both.arm in rows
        assert both.x[1] == given
        with pytest.raises(ValueError, match="None of the points that may be chosen"):
            agent.ask(among=rows, context={0: float(GRID.points[-1, 0])})


@pytest.mark.parametrize("domain", [BOX, GRID, Finite(np.arange(5.0)[:, None])])
def test_a_kernel_for_other_inputs_is_refused(domain):
    wrong = Prior(Matern52(np.ones(3)), 0.1)
    with pytest.raises(ValueError, match="coordinates: give one lengthscale, or"):
        Learner(domain, Parts(GaussianProcess(wrong), Fixed(2.0), UCB()))
    Learner(domain, Parts(GaussianProcess(Prior(Matern52(1.0), 0.1)), Fixed(2.0), UCB()))


@pytest.mark.parametrize("width", [np.nan, np.inf, -1.0])
def test_what_is_no_width_is_refused(width):
    learner = Learner(GRID, Parts(GaussianProcess(PRIOR), lambda posterior, t: width, UCB()))
    with pytest.raises(ValueError, match=f"number >= 0.*returned {width}"):
        learner.ask()


def test_the_bounds_of_results_that_do_not_differ_are_infinite():
    learner = Learner(BOX, seed=0)
    learner.tell(GRID.points[:2], [5e6, 5e6])
    found = learner.recommend()
    assert (found.lower, found.upper) == (-np.inf, np.inf)
    assert found.mean == pytest.approx(5e6)
    learner.tell(GRID.points[2], 4e6)
    assert np.isfinite(learner.recommend().lower)


def test_what_is_no_domain_is_refused():
    with pytest.raises(TypeError, match=r"Box\(lower, upper\)"):
        Learner([(0.0, 1.0)])


@on_grid_and_box
def test_telling_nothing_is_nothing(domain):
    agent = learner(domain)
    agent.tell(np.empty((0, 2)), [])
    assert len(agent) == 0
    assert agent.trust.shape == (0,)
    with pytest.raises(ValueError, match="There is no result yet"):
        agent.recommend()
    agent.ask()


def test_the_executed_input_may_differ_from_the_chosen_one():
    agent = learner(BOX)
    choice = agent.ask()
    elsewhere = np.array([11.0, 0.25])
    agent.tell(elsewhere, 3.0)
    assert agent.pending == []
    assert_array_equal(agent.observations.x, elsewhere[None])
    assert not np.array_equal(agent.ask().x, choice.x)
    agent.tell([13.0, 0.5], 1.0)  # not even asked: the answer to what is pending
    agent.tell([13.0, 0.5], 1.0)  # and this one to nothing at all
    assert len(agent) == 3


def test_answers_take_what_they_answer_off_the_list():
    agent = learner(BOX)
    a, b, c = agent.ask_batch(3)
    agent.tell(b.x, 1.0)
    assert [p is q for p, q in zip(agent.pending, [a, c], strict=True)] == [True, True]
    agent.tell([11.0, 0.25], 1.0, choice=c)
    assert len(agent.pending) == 1
    assert agent.pending[0] is a
    agent.tell([11.0, 0.25], 1.0, choice=c)  # again: nothing changes
    assert len(agent.pending) == 1
    agent.forget_pending()
    assert agent.pending == []
    agent.tell(a.x, 1.0, choice=Choice(a.x))  # a stranger
    assert len(agent) == 4


def test_a_learner_whose_pending_somebody_else_keeps():
    told, theirs = learner(), learner()
    for agent in (told, theirs):
        agent.tell(GRID.points[[3, 40]], [1.0, 2.0])
    first, second = told.ask(), told.ask()
    assert theirs.ask(pending=np.empty((0, 2))).arm == first.arm
    assert theirs.ask(pending=first.x[None]).arm == second.arm
    assert theirs.pending == []


def test_a_policy_may_wait_for_what_is_on_its_way():
    class OnceAtATime(Policy):
        def start(self, domain):
            return None

        def choose(self, view, state, n):
            if len(view.pending):
                return [], state
            return UCB().choose(view, None, 1)[0], state

    agent = Learner(GRID, Parts(GaussianProcess(PRIOR), Fixed(2.0), OnceAtATime()), seed=0)
    choice = agent.ask()
    assert agent.ask_batch(4) == []
    with pytest.raises(WaitingError, match="OnceAtATime waits for 1 results"):
        agent.ask()
    agent.tell(choice.x, 0.0)
    assert agent.ask().arm is not None


def test_a_policy_that_chooses_nothing_waits_for_nothing():
    class Lazy(Policy):
        def start(self, domain):
            return None

        def choose(self, view, state, n):
            return [], state

    agent = Learner(GRID, Parts(GaussianProcess(PRIOR), Fixed(2.0), Lazy()))
    with pytest.raises(WaitingError, match="Lazy chose nothing, though no result is pending"):
        agent.ask()


def test_the_recommendation_is_the_best_lower_bound_among_those_tried():
    agent = learner(GRID)
    play([agent], 25)
    recommended = agent.recommend()
    tried = np.unique(agent.observations.x, axis=0)
    mean, std = agent.posterior.predict(tried)
    best = np.argmax(mean - 2.0 * std)
    assert_array_equal(recommended.x, tried[best])
    assert_allclose(recommended.mean, mean[best])
    assert_allclose([recommended.lower, recommended.upper], mean[best] + [-2, 2] * std[[best] * 2])
    everywhere = agent.posterior.predict(GRID.points)[0]
    assert_allclose(recommended.model_mean, everywhere.max())
    assert_array_equal(recommended.model_x, GRID.points[np.argmax(everywhere)])


def test_what_was_asked_may_be_recommended_where_something_else_was_executed():
    agent = learner(BOX)
    play([agent], 15)
    asked = BOX.sample(6, np.random.default_rng(1))
    recommended = agent.recommend(settings=asked)
    mean, std = agent.posterior.predict(asked)
    best = np.argmax(mean - 2.0 * std)
    assert_array_equal(recommended.x, asked[best])
    assert_allclose(recommended.mean, mean[best])
    assert_array_equal(recommended.model_x, agent.recommend().model_x)
    with pytest.raises(ValueError, match="must be in the box"):
        agent.recommend(settings=[BOX.upper + 1.0])


@pytest.mark.parametrize("lie", [1e3, 1e6, 1e300, np.inf])
def test_a_lucky_lie_is_not_recommended(lie):
    agent = learner(BOX, Plateau(3.0, 0.5, 0.5, "noise"))
    rng = np.random.default_rng(0)
    x = BOX.sample(40, rng)
    y = np.array([value(row) for row in x])
    worst = int(np.argmin(y))
    y[worst] = lie
    agent.tell(x, y)
    recommended = agent.recommend()
    assert value(recommended.x) > np.sort([value(row) for row in x])[-6]
    assert agent.trust[worst] < 0.01
    assert value(recommended.model_x) > 1.0


def test_if_nothing_is_believed_something_is_recommended_all_the_same():
    agent = learner(GRID)
    agent.tell(GRID.points[:3], [np.nan, np.inf, -np.inf])
    assert_array_equal(agent.trust, [0.0, 0.0, 0.0])
    assert np.isfinite(agent.recommend().mean)


# Zero cost


@pytest.mark.parametrize(("domain", "rounds"), [(GRID, 100), (BOX, 40)], ids=["grid", "box"])
def test_zero_cost_with_a_given_prior(domain, rounds):
    play([learner(domain), learner(domain, Plateau(1e9, 1.0, PRIOR.mean))], rounds)


@pytest.mark.parametrize("rounds", [30, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("domain", [GRID, Box([3.0], [9.0], candidates=64, climbs=3)])
def test_zero_cost_with_the_same_fitting(domain, rounds):
    # Bit for bit: choices, beliefs and hyperparameters.
    family = Prior(Scaled(Matern52(np.ones(domain.dim))), 0.05)
    agents = [
        learner(domain, defence, family, Fitting(), Schedule())
        for defence in (Trust(), AdaptivePlateau(1e9), AdaptivePlateau(1e9, 1.0, "noise"))
    ]
    rng = np.random.default_rng(4)
    for _ in range(rounds):
        choices = [agent.ask() for agent in agents]
        y = float(np.sin(2.0 * choices[0].x.sum())) + 0.1 * rng.standard_normal()
        for agent, choice in zip(agents, choices, strict=True):
            assert_array_equal(choice.x, choices[0].x)
            agent.tell(choice.x, y)
    thetas = [agent.posterior.prior.kernel.theta for agent in agents]
    assert_array_equal(thetas[0], thetas[1])
    assert_array_equal(thetas[0], thetas[2])


# Units


@given(st.integers(0, 10**6), st.integers(-8, 8), st.sampled_from([0.0, 1000.0, -7.5]))
def test_translating_and_rescaling_results_changes_no_choice(seed, power, shift):
    scale = 2.0**power
    kernel = Scaled(PRIOR.kernel, scale**2)
    moved = Prior(kernel, scale**2 * PRIOR.noise, shift + scale * PRIOR.mean)
    here = learner(GRID, Plateau(1.0, 0.5, PRIOR.mean))
    there = learner(GRID, Plateau(scale, 0.5 * scale, moved.mean), moved)
    x = GRID.sample(20, np.random.default_rng(seed))
    y = np.array([value(row) for row in x])
    y[7] = 1e4
    here.tell(x, y)
    there.tell(x, shift + scale * y)
    mean, std = here.posterior.predict(GRID.points)
    other_mean, other_std = there.posterior.predict(GRID.points)
    assert_allclose((other_mean - shift) / scale, mean, atol=1e-8 * (1 + abs(shift) / scale))
    assert_allclose(other_std / scale, std, atol=1e-9)
    assert_allclose(there.trust, here.trust, atol=1e-8)


@pytest.mark.parametrize("factor", [0.125, 64.0])
def test_rescaling_a_box_by_a_power_of_two_changes_no_bit_of_a_campaign(factor):
    far = Box(factor * BOX.lower, factor * BOX.upper, candidates=64, climbs=3)
    prior = Prior(Scaled(Matern52(factor * np.array([1.0, 0.5])), 2.0), PRIOR.noise, PRIOR.mean)
    here, there = learner(BOX), learner(far, prior=prior)
    for _ in range(15):
        a, b = here.ask(), there.ask()
        assert_array_equal(factor * a.x, b.x)
        here.tell(a.x, value(a.x))
        there.tell(b.x, value(a.x))


def test_with_fitted_hyperparameters_units_do_not_matter_either():
    # The same data in other units: the same recommendation and, in deviations, the same belief.
    family = Prior(Scaled(Matern52(np.ones(2))), 0.05)
    far = Box(1e4 + 50.0 * BOX.lower, 1e4 + 50.0 * BOX.upper)
    here = learner(BOX, AdaptivePlateau(), family, Fitting(iterations=60), Schedule())
    there = learner(far, AdaptivePlateau(), family, Fitting(iterations=60), Schedule())
    x = BOX.sample(40, np.random.default_rng(3))
    y = np.array([value(row) for row in x])
    y[11] = 1e6
    here.tell(x, y)
    there.tell(1e4 + 50.0 * x, 300.0 + 1e-3 * y)
    a, b = here.recommend(), there.recommend()
    assert_allclose(1e4 + 50.0 * a.x, b.x, atol=1e-9)
    assert_allclose((b.mean - 300.0) / 1e-3, a.mean, atol=1e-2)
    assert_allclose((b.upper - b.lower) / 1e-3, a.upper - a.lower, rtol=2e-2)
    assert_allclose(here.trust, there.trust, atol=1e-3)


# Resuming


@on_grid_and_box
@pytest.mark.parametrize(
    "defence", [Trust(), Plateau(1.0, 0.5, 0.5), AdaptivePlateau(1.0)], ids=["0", "1", "2"]
)
def test_a_learner_told_the_same_history_believes_the_same(domain, defence):
    original = learner(domain, defence)
    play([original], 30, lie={5: 1e6, 11: np.nan})
    told = original.observations
    resumed = learner(domain, defence)
    resumed.tell(told.x, told.observed)
    z = domain.sample(10, np.random.default_rng(0))
    for a, b in zip(original.posterior.predict(z), resumed.posterior.predict(z), strict=True):
        assert_allclose(a, b, atol=1e-10)
    assert_array_equal(original.trust, resumed.trust)
    assert_allclose(original.posterior.information, resumed.posterior.information, rtol=1e-10)
    if domain is GRID:
        assert original.ask().arm == resumed.ask().arm


def test_a_resumed_fit_is_as_good_as_the_path_that_led_there():
    family = Prior(Scaled(Matern52(np.ones(2))), 0.05)
    original = learner(BOX, AdaptivePlateau(), family, Fitting(), Schedule())
    play([original], 25)
    resumed = learner(BOX, AdaptivePlateau(), family, Fitting(), Schedule())
    told = original.observations
    resumed.tell(told.x, told.observed)
    z = BOX.sample(20, np.random.default_rng(0))
    (mean, std), (other, _) = (agent.posterior.predict(z) for agent in (original, resumed))
    assert np.abs(mean - other).max() < 0.5 * std.max() + 0.05


def test_asking_twice_without_telling_does_not_refit():
    calls = []

    class Counting:
        def __call__(self, domain, observations, previous=None):
            calls.append(len(observations))
            return GaussianProcess(PRIOR)(domain, observations, previous)

    agent = Learner(GRID, Parts(Counting(), Fixed(2.0), UCB()), seed=0)
    agent.ask()
    agent.ask_batch(3)
    assert agent.trust.shape == (0,)
    agent.tell(GRID.points[0], 1.0)
    agent.tell(GRID.points[1], 1.0)  # telling only appends
    assert calls == [0]
    agent.recommend()
    agent.ask()
    assert agent.posterior.n == 2
    assert calls == [0, 2]


def test_seeds_and_generators():
    a, b, c = (learner(BOX, seed=s) for s in (3, np.random.default_rng(3), 4))
    assert_array_equal(a.ask().x, b.ask().x)
    flat = [learner(Box([0.0], [1.0]), prior=Prior(Matern52(1.0), 0.1), seed=s) for s in (3, 4)]
    assert not np.array_equal(flat[0].ask().x, flat[1].ask().x)  # nothing known: all is equal
    assert c.ask().arm is None


def test_a_finite_domain_of_one_point():
    agent = learner(Finite(np.array([[12.0, 0.0]])))
    for _ in range(5):
        agent.tell(agent.ask().x, 1.0)
    assert agent.recommend().mean == pytest.approx((0.5 / 2.0 + 5 / 0.1) / (1 / 2.0 + 5 / 0.1))


def test_by_default_it_is_the_default_method():
    box = Box([0.0], [1.0])
    policy = Initial(VerifiedImprovement(), 10)
    plain, named = Learner(box, seed=0), Learner(box, recipes.robust(policy=policy), seed=0)
    for _ in range(13):
        choice = plain.ask()
        assert_array_equal(choice.x, named.ask().x)
        for learner in (plain, named):
            learner.tell(choice.x, -((choice.x[0] - 0.3) ** 2))
    mixed = Learner(box, replace(recipes.robust()(box), policy=UCB()))
    assert isinstance(mixed.policy, UCB)
    assert isinstance(mixed.model, LeaveOneOutGP)


@pytest.mark.parametrize(
    ("x", "said"),
    [
        ([14.7, 0.5], "At chose outside of the domain. An input must be in the box"),
        ([np.nan, 0.5], "At chose outside of the domain. "),
        ([11.0, 0.5], "At chose [[11.0, 0.5]], outside of the part of the domain that among="),
    ],
)
def test_what_a_policy_may_not_choose_is_refused(x, said):
    class At(UCB):
        def choose(self, view, state, n):
            return [Choice(np.array(x))], state

    agent = Learner(BOX, replace(learner(BOX).parts, policy=At()))
    with pytest.raises(ValueError, match=re.escape(said)):
        agent.ask(context={0: 12.5})
    assert not agent.pending
    if x[0] == 11.0:
        assert agent.ask().x.tolist() == x


def test_an_arm_that_is_not_among_those_of_the_round_is_refused():
    class First(UCB):
        def choose(self, view, state, n):
            return [Choice(view.domain.points[0], 0)], state

    agent = Learner(GRID, replace(learner(GRID).parts, policy=First()))
    with pytest.raises(ValueError, match=r"First chose \[\[10.0, -1.0\]\], outside of the part"):
        agent.ask(among=[3, 4])
    assert agent.ask(among=[0, 4]).arm == 0


def test_its_text_is_what_is_known():
    learner = Learner(Box([0.0, -3.0], [1.0, 3.0]), seed=0)
    assert str(learner).endswith("results      0")
    for t in range(14):
        choice = learner.ask()
        value = -((choice.x[0] - 0.3) ** 2) - (choice.x[1] - 1.0) ** 2
        learner.tell(choice.x, value + 50.0 * (t == 9), choice=choice)
    learner.tell([0.9, -2.0], failed="infeasible")
    text = str(learner)
    assert "results      14" in text
    assert "distrusted   9 (from 0)" in text
    assert "failures     1" in text
    assert text.splitlines()[-1].startswith("recommended  [0.3")
    assert learner._repr_html_().startswith("<pre>Learner on Box")
    points = np.linspace(0.1, 0.9, 5)
    learner.tell(np.c_[points, points], points, constraints={"heat": points - 0.5})
    shown, probability = str(learner), learner.constraints()(learner.recommend().x[None]).item()
    assert f"feasible     with probability {probability:.2f} there" in shown


@pytest.mark.parametrize(
    "recipe",
    [
        recipes.robust(),
        recipes.gp_ucb(),
        recipes.tp_ucb(),
        recipes.tgp_ucb(),
        recipes.a2_rcgp_ucb(),
    ],
    ids=lambda recipe: type(recipe).__name__,
)
def test_a_look_between_the_results_of_a_batch_changes_no_choice(recipe):
    box = Box([0.0, 0.0], [1.0, 1.0])

    def campaign(looking):
        agent, asked = Learner(box, recipe, seed=0), []
        for _ in range(3):
            for x in [choice.x for choice in agent.ask_batch(3)]:
                asked.append(x)
                agent.tell(x, float(np.sin(5.0 * x[0]) + x[1]))
                if looking:
                    agent.recommend()
        return np.array(asked)

    assert_array_equal(campaign(True), campaign(False))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_has_pending_choices_of_its_own(copied):
    agent = learner()
    first, second = agent.ask_batch(2)
    other = copied(agent)
    other.tell(first.x, 1.0)
    assert [choice.x.tolist() for choice in other.pending] == [second.x.tolist()]
    other.tell(second.x, 1.0, choice=other.pending[0])
    assert not other.pending
    assert len(agent.pending) == 2


def test_a_choice_that_was_read_from_a_file_answers_the_one_of_its_point():
    agent = learner()
    first, second, _ = agent.ask_batch(3)
    read = pickle.loads(pickle.dumps([first, second]))
    agent.tell(first.x, 1.0, choice=read[0])
    agent.forget_pending(read[1])
    assert len(agent.pending) == 1
    agent.forget_pending(read[1])
    assert len(agent.pending) == 1


def test_pending_choices_are_forgotten_one_several_none_or_all():
    agent = learner(BOX)
    first, second, third, _ = agent.ask_batch(4)
    agent.forget_pending([])
    assert len(agent.pending) == 4
    agent.forget_pending([first, second])
    agent.forget_pending([first])
    assert len(agent.pending) == 2
    agent.forget_pending(third)
    assert len(agent.pending) == 1
    with pytest.raises(ValueError, match="a choice or several, got 3"):
        agent.forget_pending(3)
    with pytest.raises(ValueError, match="a choice or several, got array"):
        agent.forget_pending(np.array(1))
    with pytest.raises(ValueError, match="a choice or several, got 3"):
        MultiLearner(BOX, 2).forget_pending(3)
    with pytest.raises(ValueError, match="a choice or several, got None"):
        agent.forget_pending([agent.pending[0], None])
    assert len(agent.pending) == 1
    agent.forget_pending()
    assert not agent.pending


def test_a_result_answers_the_nearest_choice_or_none():
    agent = learner(BOX)
    asked = agent.ask_batch(4)
    for choice in asked[::-1]:
        agent.tell(BOX.lower + 0.999 * (choice.x - BOX.lower), 1.0)
        assert all(choice is not each for each in agent.pending)
    one, two = agent.ask_batch(2)
    agent.tell(BOX.spread(3, np.random.default_rng(0)), np.zeros(3), choice=[None] * 3)
    assert agent.pending == [one, two]
    agent.tell([one.x, two.x], [0.0, 0.0], choice=[one, None])
    assert agent.pending == [two]
    assert len(agent.history.moved) == 4  # those that were executed elsewhere
    other = agent.ask()
    agent.tell([0.5 * (other.x + two.x), two.x], [0.0, 0.0])
    assert_array_equal(agent.history.moved[4:], [other.x])
    assert not agent.pending


def test_a_noise_variance_is_not_always_known():
    agents = [learner(BOX), learner(BOX)]
    x = BOX.spread(3, np.random.default_rng(0))
    agents[0].tell(x, [1.0, 2.0, 3.0], noise=[0.2, np.nan, 0.3])
    for row, noise in enumerate((0.2, None, 0.3)):
        agents[1].tell(x[row], row + 1.0, noise=noise)
    assert_array_equal(*(agent.observations.noise for agent in agents))


def test_a_choice_that_was_answered_answers_no_other_one_of_its_point():
    agent = Learner(Finite(np.array([[0.0, 0.0]])), recipes.gp_ucb(prior=PRIOR), seed=0)
    first, second = agent.ask_batch(2)
    agent.tell(first.x, 1.0)  # the older one
    for choice in (first, pickle.loads(pickle.dumps(first))):
        agent.tell(first.x, 1.0, choice=choice)
        assert agent.pending == [second]
    agent.tell(second.x, 1.0, choice=copy.deepcopy(second))
    assert not agent.pending


def test_masked_results_are_nan_and_masked_inputs_are_refused():
    agent = Learner(BOX)
    x = BOX.sample(3, np.random.default_rng(0))
    agent.tell(x, np.ma.masked_array([1.0, 2.0, -9999.0], mask=[0, 0, 1]))
    agent.tell(x[0], np.ma.masked)
    assert_array_equal(agent.observations.observed, [1.0, 2.0, np.nan, np.nan])
    with pytest.raises(ValueError, match="An input must be finite"):
        agent.tell(np.ma.masked_array(x[0], mask=[0, 1]), 1.0)


@pytest.mark.parametrize("y", ["0,5", {"y": 1.0}, 10**400, object(), [1.0, "a"]])
def test_what_is_no_number_is_refused_in_words(y):
    agent = Learner(BOX)
    x = BOX.sample(1, np.random.default_rng(0))[0]
    with pytest.raises(ValueError, match="A result is a number or an array of numbers, got"):
        agent.tell(x, y)
    with pytest.raises(ValueError, match="An input is a number or an array of numbers, got"):
        agent.tell({"a": 1.0}, 1.0)
    with pytest.raises(ValueError, match=r"tell choice.x, choice=choice"):
        agent.tell(agent.ask(), 1.0)
    with pytest.raises(ValueError, match="Constraints are values by name"):
        agent.tell(x, 1.0, constraints=[-1.0])
    for context in ([0.5], {0: "0.5"}):
        with pytest.raises(ValueError, match="oordinate"):
            agent.ask(context=context)
    assert not len(agent)


def test_points_are_no_row_numbers():
    domain = Finite([[3.0, 0.0], [1.0, 0.0], [0.0, 0.0], [2.0, 1.0]])
    with pytest.raises(ValueError, match=r"domain.locate\(points\)"):
        Learner(domain).ask(among=[[0, 0]])
    rows = domain.locate(np.array([[0.0, 0.0]]))
    assert Learner(domain).ask(among=rows).x.tolist() == [0.0, 0.0]


def test_a_misspelt_constraint_is_named():
    agent = Learner(BOX)
    x = BOX.sample(3, np.random.default_rng(0))
    agent.tell(x[0], 1.0, constraints={"mass": -1.0, "load": -1.0})
    with pytest.warns(UserWarning, match="'mas' is new, and 'mass' has no value"):
        agent.tell(x[1], 1.0, constraints={"mas": -1.0})
    other = Learner(BOX)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for point in x:
            other.tell(point, 1.0, constraints={"mass": -1.0})
            other.tell(point, 1.0, constraints={"mass": -1.0, "mass2": -1.0, "size": 1.0})
        other.tell(point, 1.0, constraints={"time": -1.0})


@pytest.mark.parametrize("count", [0, 2.5, "8"])
def test_counts_of_a_search_are_whole_numbers(count):
    for name in ("candidates", "climbs"):
        with pytest.raises(ValueError, match=f"{name} is a whole number above 0"):
            Box([0.0], [1.0], **{name: count})
    if count:
        with pytest.raises(ValueError, match="size >= 0, a whole number, got"):
            Initial(UCB(), count)


@pytest.mark.parametrize("points", [[[0.1, 0.2, 0.3]], [[np.nan, 0.5]]])
def test_points_of_another_shape_are_refused(points):
    agent = learner(BOX)
    agent.tell([11.0, 0.0], 1.0)
    with pytest.raises(ValueError, match=r"coordinates|nan"):
        agent.ask(pending=points)
    with pytest.raises(ValueError, match=r"coordinates|nan"):
        agent.recommend(settings=points)
    assert agent.ask(pending=[]).x.shape == (2,)


@pytest.mark.parametrize("recipe", ["gp_ucb", 5, "", 0])
def test_what_is_no_recipe_is_refused(recipe):
    with pytest.raises(TypeError, match=f"A recipe is a value of stoic.recipes.*got {recipe!r}"):
        Learner(Box([0.0], [1.0]), recipe)
    with pytest.raises(TypeError, match=r"A recipe is a value of stoic.recipes"):
        MultiLearner(Box([0.0], [1.0]), 2, recipe)


def test_a_recipe_without_its_brackets_is_refused():
    with pytest.raises(TypeError, match=r"write robust\(\) instead of robust"):
        Learner(Box([0.0], [1.0]), recipes.robust)


@pytest.mark.parametrize("policy", ["ei", UCB])
@pytest.mark.parametrize("write", [recipes.gp_ucb, recipes.robust])
def test_what_is_no_policy_is_refused(write, policy):
    with pytest.raises(TypeError, match=r"A policy is one of stoic.policies, such as UCB\(\)"):
        Learner(Box([0.0], [1.0]), write(policy=policy))


@pytest.mark.parametrize("confidence", [2.0, Fixed, "wide"])
def test_what_is_no_confidence_is_refused(confidence):
    with pytest.raises(TypeError, match=r"A confidence is one of .* such as Fixed\(2.0\)"):
        Learner(Box([0.0], [1.0]), recipes.gp_ucb(confidence=confidence))


def test_a_defence_instead_of_a_model_is_refused():
    with pytest.raises(TypeError, match=r"Trust.* is part of a model: GaussianProcess\(prior"):
        Learner(Box([0.0], [1.0]), Parts(Trust()))


@pytest.mark.parametrize("seed", ["a", 1.5, -1])
def test_what_is_no_seed_is_refused(seed):
    with pytest.raises(ValueError, match="whole number from 0 on, a generator of NumPy or None"):
        Learner(Box([0.0], [1.0]), seed=seed)


def hill(x):
    return -((x[0] - 0.5 + x[1] / 60.0) ** 2)


@pytest.mark.parametrize("wrong", [hill([0.99, 10.0]), -50.0], ids=["bad", "outlier"])
@pytest.mark.parametrize("finite", [False, True])
def test_one_bad_point_alone_is_no_answer_for_its_context(wrong, finite):
    box = Box([0.0, -10.0], [1.0, 30.0])
    rng = np.random.default_rng(1)
    x = np.c_[rng.uniform(0.0, 1.0, 40), rng.uniform(-10.0, 30.0, 40)]
    grid = Finite(np.concatenate([x, [[0.99, 10.0], [0.4, 10.0]]]))
    agent = Learner(grid if finite else box, seed=0)
    agent.tell(x, [hill(point) + 0.01 * rng.standard_normal() for point in x])
    agent.tell([0.99, 10.0], wrong)
    best = agent.recommend(context={1: 10.0})
    assert abs(best.x[0] - 1.0 / 3.0) < 0.1
    assert best.lower > -0.05
    # A tried point that is nearly as good as any is the answer
    agent.tell([0.4, 10.0], hill([0.4, 10.0]))
    assert agent.recommend(context={1: 10.0}).x[0] == 0.4


def test_the_answer_for_a_context_holds_the_constraints():
    box, rng = Box([0.0, -10.0], [1.0, 30.0]), np.random.default_rng(0)
    x = np.c_[rng.uniform(0.0, 1.0, 40), rng.uniform(-10.0, 30.0, 40)]
    agent = Learner(box, seed=0)
    agent.tell(x, [hill(point) for point in x], constraints={"least": 0.6 - x[:, 0]})
    for tried, excess in ((0.99, -0.39), (0.4, 0.2)):
        agent.tell([tried, 10.0], hill([tried, 10.0]), constraints={"least": excess})
        best = agent.recommend(context={1: 10.0})
        assert 0.6 <= best.x[0] <= 0.7
        assert best.notes["feasible"] >= 0.9


def test_what_lies_between_the_values_of_a_lattice_is_not_recommended():
    box = Box([0.0, 0.0], [1.0, 5.0], lattices=(Lattice(np.array([1]), np.arange(6.0)),))
    agent = Learner(box, seed=0)
    x = box.sample(12, np.random.default_rng(0))
    agent.tell(x, [-((a - 0.5) ** 2) - (b - 2.4) ** 2 for a, b in x])
    agent.tell([0.5, 2.4], 0.0)
    assert box.contains(agent.recommend().x[None])[0]
    # Executed a little beside them, all results count
    agent = Learner(box, seed=0)
    beside = x + np.array([0.0, 0.01])
    agent.tell(np.clip(beside, box.lower, box.upper), -((x[:, 0] - 0.5) ** 2))
    agent.tell([0.99, 5.0], -0.9)
    assert abs(agent.recommend().x[0] - 0.5) < 0.2


def test_what_is_printed_has_a_deviation_only_where_there_is_a_scale():
    agent = Learner(Box([0.0], [1.0]), seed=0)
    agent.tell([0.5], 1.0)
    assert str(agent).endswith("recommended  [0.5]: 1 +- unknown")
    agent.tell([[0.1], [0.9]], [0.0, 0.2])
    assert "unknown" not in str(agent)
