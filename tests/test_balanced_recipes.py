"""Recipes that need not be told what is wrong."""

import math
from dataclasses import replace

import numpy as np
import pytest

from stoic import Box, Prior, recipes, testing
from stoic.adversaries import Adversary, Gaussian, Replace, StudentT
from stoic.balancing import build
from stoic.confidence import CorruptionBudget, Fixed, Misspecified, SelfNormalised, Theory
from stoic.defences import Anchored, Truncation
from stoic.environment import Environment
from stoic.kernels import RBF
from stoic.posteriors import information_bounds
from stoic.problems import Tabulated, gaussian_draw
from stoic.recipes import Threats, any_threat, contextual_ec_gp_ucb
from stoic.simulate import run

GRID = Box([0.0, 5.0], [1.0, 9.0]).grid(8)
KERNEL = RBF(np.array([0.25, 1.0]))
PRIOR = Prior(KERNEL, 0.04)
UNIT = Prior(RBF(np.array([0.5, 2.0])), 1.0)  # lambda = 1: little is to be learned


def practice(recipe, horizon, domain=GRID, **settings):
    return build(domain, recipe(theory=Theory("practice", horizon=horizon), **settings), seed=0)


def test_the_errors_and_their_number_are_the_papers():
    T = 10_000
    gamma = information_bounds(UNIT, GRID, T).upper
    balanced = build(GRID, contextual_ec_gp_ucb(prior=UNIT, theory=Theory(delta=0.1, horizon=T)))
    M = math.ceil(1 + 0.5 * math.log2(T / gamma**2))
    assert len(balanced.learners) == M >= 2
    for i, learner in enumerate(balanced.learners, start=1):
        width = learner.confidence
        assert isinstance(width, Misspecified)
        assert width.error == pytest.approx(2.0 ** (1 - i) / math.sqrt(gamma))
        assert width.base == SelfNormalised(1.0, None, 0.1 / (2 * M))
        assert width.weight == 1.0
    assert (balanced.c, balanced.everything, balanced.delta) == (None, False, 0.05)
    wide = practice(contextual_ec_gp_ucb, T, prior=UNIT, span=(-3.0, 1.0), learners=2)
    errors = [learner.confidence.error for learner in wide.learners]
    assert errors == pytest.approx([4.0 / math.sqrt(gamma), 2.0 / math.sqrt(gamma)])
    # T < gamma^2: even the largest error costs no more than learning does.
    assert len(practice(contextual_ec_gp_ucb, 100, prior=PRIOR).learners) == 1


def test_the_promises_are_eq_22_with_its_constants():
    T, B, R = 5000, 1.5, 0.7
    gamma = information_bounds(UNIT, GRID, T).upper
    theory = Theory(norm=B, noise_sd=R, horizon=T)
    recipe = contextual_ec_gp_ucb(prior=UNIT, span=(0.0, 1000.0), learners=3, theory=theory)
    balanced = build(GRID, recipe)
    for i, promise in enumerate(balanced.bounds, start=1):
        eps = 1000.0 * 2.0 ** (1 - i) / math.sqrt(gamma)
        beta = B + R * math.sqrt(2 * math.log(6 / 0.1) + 2 * gamma)
        for N in (1, 40, 3000):
            std = math.sqrt(2 * gamma * N / math.log(2))
            literal = 2 * (beta + eps * math.sqrt(N)) * std + 2 * eps * N
            assert promise(N) == pytest.approx(min(literal, 1000.0 * N), rel=1e-12)
        assert promise(0) == 0.0


def contextual(seed, wrong):
    """f in [0, 1] on the grid: a smooth draw, and random signs times ``wrong`` on top of it."""
    rng = np.random.default_rng(seed)
    smooth = gaussian_draw(GRID, UNIT.kernel, seed).values
    smooth = 0.2 + 0.6 * (smooth - smooth.min()) / np.ptp(smooth)
    return smooth + wrong * rng.choice([-1.0, 1.0], len(GRID))


def play(learner, f, seed, rounds):
    """Regret against the best of 12 random actions a round."""
    actions, noise = np.random.default_rng(seed), np.random.default_rng(seed + 1000)
    regret = 0.0
    for _ in range(rounds):
        given = actions.choice(len(GRID), 12, replace=False)
        choice = learner.ask(among=given)
        regret += f[given].max() - f[choice.arm]
        learner.tell(choice.x, f[choice.arm] + 0.1 * noise.standard_normal(), choice=choice)
    return regret


@pytest.mark.long
@pytest.mark.parametrize(
    "wrong", [*(pytest.param(wrong, marks=pytest.mark.slow) for wrong in (0.0, 0.05)), 0.2]
)
def test_balancing_is_within_a_constant_of_the_best_of_its_learners(wrong):
    """Each learns from a third of the results; told everything, they lose less than that costs.

    Taking turns is as good as the former. The latter is better than the worst of them alone.
    """
    prior = Prior(UNIT.kernel, 0.01, 0.5)

    def make(everything=False):
        settings = {"prior": prior, "learners": 3, "everything": everything}
        return practice(contextual_ec_gp_ucb, 1500, **settings)

    own = everything = 0.0
    alone = np.zeros(3)
    for seed in range(2):
        f = contextual(seed, wrong)
        for i, learner in enumerate(make().learners):
            alone[i] += play(learner, f, seed, 1500)
        master = make()
        own += play(master, f, seed, 1500)
        assert list(master.plays) == sorted(master.plays)  # who promises least is played most
        everything += play(make(everything=True), f, seed, 1500)
    assert own <= 3.0 * alone.min()  # as many as there are learners
    assert everything < own
    assert everything < alone.max()


def test_the_defences_and_what_they_are_to_withstand():
    balanced = practice(any_threat, 1000, prior=PRIOR, confidence=Fixed(2.0))
    a2, tgp, gp, rgp, ec = balanced.learners
    assert gp.confidence == a2.confidence == tgp.confidence == Fixed(2.0)
    assert isinstance(a2.model.defence, Anchored)
    assert isinstance(tgp.model.defence, Truncation)
    assert isinstance(rgp.confidence, CorruptionBudget)
    # Twice the width of GP-UCB at the end: 0.1 C / 0.2 = 0.1 eps sqrt(1000) / 0.2 = 2.
    assert rgp.confidence.budget == pytest.approx(4.0)
    assert ec.confidence.error == pytest.approx(4.0 / math.sqrt(1000))
    reach = 3.0 * math.sqrt(1.04)
    assert balanced.span == pytest.approx((-reach, reach))
    given = build(GRID, any_threat(prior=PRIOR, threats=Threats(budget=50.0, error=0.3)))
    assert given.learners[3].confidence.budget == 50.0
    assert given.learners[4].confidence.error == 0.3
    theory = build(GRID, any_threat(prior=PRIOR, theory=Theory(horizon=1000)))
    assert (theory.c, theory.unit, theory.corrupted, theory.everything) == (None, "span", 10, False)
    assert theory.budget == theory.learners[3].confidence.budget > 0.0
    with pytest.raises(ValueError, match="needs a prior"):
        build(GRID, any_threat(theory=Theory()))


@pytest.mark.parametrize("lie", [1e6, -1e6, math.nan, -math.inf])
def test_it_survives_lies_of_any_size(lie):
    """Eight of 500 results. GP-UCB alone never recovers from 1e6."""
    problem = gaussian_draw(GRID, KERNEL, 3)
    lies = Adversary(Replace(dict.fromkeys(range(5, 100, 12), lie)))
    late = {}
    for make in (any_threat, recipes.gp_ucb):
        learner = build(GRID, make(prior=PRIOR, confidence=Fixed(2.0)))
        world = Environment(problem, Gaussian(0.2), lies, seed=3)
        trace = run(learner, world, 500, recommend=True)
        late[make] = trace.regret[-100:].mean()
        if make is any_threat:
            assert trace.inference_regret < 0.2
            assert np.isfinite(learner.scores).all()
    assert late[any_threat] < 0.25
    if math.isfinite(lie):
        assert late[recipes.gp_ucb] > 0.3 > late[any_threat]


def test_without_a_lie_it_costs_a_constant_factor():
    total = {any_threat: 0.0, recipes.gp_ucb: 0.0}
    for seed in range(4):
        problem = gaussian_draw(GRID, KERNEL, seed)
        for make in total:
            learner = build(GRID, make(prior=PRIOR, confidence=Fixed(2.0)))
            trace = run(learner, Environment(problem, Gaussian(0.2), seed=seed), 300)
            total[make] += trace.cumulative_regret[-1]
    assert total[any_threat] < 5.0 * total[recipes.gp_ucb]  # as many as there are learners


def test_without_a_prior_the_range_is_found_in_the_results():
    rng = np.random.default_rng(0)
    balanced = practice(any_threat, 30, Box([0.0], [1.0]))
    for t in range(24):
        choice = balanced.ask()
        y = 500.0 + 100.0 * np.sin(6.0 * choice.x[0]) + rng.standard_normal()
        balanced.tell(choice.x, (1e9, math.nan)[t % 2] if t in (4, 11) else y, choice=choice)
    assert 0.0 < balanced._rewards.low < 450.0 < 550.0 < balanced._rewards.high < 2000.0
    assert balanced.recommend().mean == pytest.approx(600.0, abs=30.0)


@pytest.mark.parametrize(
    "unit",
    [2.0**13, 1e-4, *(pytest.param(u, marks=pytest.mark.slow) for u in (2.0**-13, 1e4, 3.0))],
)
def test_without_a_prior_no_unit_of_the_results_matters(unit):
    """Beside each other, told the same, so that a tie for one choice does not part the others.

    On this symmetric grid choices tie exactly, and hyperparameters are only searched until the
    objective hardly changes: bounds of the same place differed by 0.33 % of their range at most.
    """
    rng = np.random.default_rng(0)
    plain, scaled = (practice(any_threat, 30) for _ in range(2))
    for t in range(24):
        one, other = plain.ask(), scaled.ask()
        asker = one.notes["learner"]
        assert other.notes["learner"] == asker
        if t >= 2:  # with fewer results there is no scale
            of_plain, of_scaled = (each.learners[asker] for each in (plain, scaled))
            assert of_plain.band().width == pytest.approx(of_scaled.band().width, rel=1e-12)
            upper, as_scaled = (
                np.dot([1.0, each.band().width], each.posterior.predict(GRID.points))
                for each in (of_plain, of_scaled)
            )
            allowed = 0.02 * np.ptp(upper)
            assert np.abs(as_scaled / unit - upper).max() <= allowed
            assert upper[one.arm] - upper[other.arm] <= allowed
        y = math.sin(6.0 * one.x[0]) + one.x[1] / 9.0 + 0.1 * rng.standard_normal()
        y = -50.0 if t == 11 else y
        plain.tell(one.x, y, choice=one)
        scaled.tell(one.x, unit * y, choice=other)
    assert scaled.plays.tolist() == plain.plays.tolist()
    assert min(plain.plays) > 0
    assert scaled.scores / unit == pytest.approx(plain.scores, rel=1e-12)
    gp, rgp, ec = (learner.band().width for learner in plain.learners[2:])
    assert rgp == pytest.approx(2.0 * gp)
    assert ec == pytest.approx((1.0 + math.sqrt(24 / 30)) * gp)


@pytest.mark.parametrize("given", [Threats(budget=1.0), Threats(error=0.1)])
def test_a_number_in_units_of_results_needs_a_prior(given):
    with pytest.raises(ValueError, match="without a prior: give a prior"):
        build(GRID, any_threat(threats=given))


def test_heavy_tails_and_theory_play():
    problem = Tabulated("f", GRID, contextual(0, 0.0))
    for recipe in (any_threat, contextual_ec_gp_ucb):
        learner = build(GRID, recipe(prior=PRIOR, theory=Theory(horizon=60)))
        run(learner, Environment(problem, StudentT(1.5), seed=0), 60)
        assert len(learner.kept) == len(learner.learners)  # nobody can be blamed so soon
        assert max(learner.plays) - min(learner.plays) <= 1  # all promise the most there is


def test_both_keep_the_contract_of_a_learner():
    domain = testing.example_domains()[0]
    prior = testing.example_prior(domain)
    for recipe in (any_threat, contextual_ec_gp_ucb):
        testing.check_learner(lambda made=recipe: practice(made, 50, domain, prior=prior))


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"theory": Theory("tight")}, "no 'tight' constants"),
        ({"theory": Theory(corruptions=3)}, "no use for corruptions in its theory"),
        ({"learners": 0}, "at least one learner"),
        ({"learners": 2.5}, "a whole number"),
    ],
)
def test_a_slip_is_refused(setting, message):
    with pytest.raises(ValueError, match=message):
        build(GRID, contextual_ec_gp_ucb(prior=PRIOR, **setting))
    if "learners" not in setting:
        with pytest.raises(ValueError, match=message):
            build(GRID, any_threat(prior=PRIOR, **setting))
    with pytest.raises(ValueError, match="needs a prior"):
        build(GRID, contextual_ec_gp_ucb(prior=None))


@pytest.mark.parametrize("span", [(1.0, 0.0), (0.0, math.nan), (0.0, math.inf), 3.0])
def test_a_span_that_is_none_is_refused(span):
    with pytest.raises(ValueError, match="low < high"):
        build(GRID, contextual_ec_gp_ucb(prior=PRIOR, span=span))


def test_results_that_may_be_rejected_are_lost_plays():
    """A2-RCGP-UCB learns nothing from a result that it rejects: its deviations do not shrink."""
    threats = Threats(corruptions=10)
    theory = build(GRID, any_threat(prior=PRIOR, theory=Theory(horizon=1000), threats=threats))
    assert [promise.wasted for promise in theory.bounds] == [10, 0, 0, 0, 0]
    assert build(GRID, any_threat(prior=PRIOR, threats=threats)).bounds[0].wasted == 0  # practice
    promise = theory.bounds[0]
    assert promise(3) == 3 * promise.most
    wide = replace(promise, most=1e12)  # so large that it is not the least
    N = 10**6
    assert wide(N) - replace(wide, wasted=0)(N) == pytest.approx(10 * 1e12)
