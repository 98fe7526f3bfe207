"""The sketches of docs/extending.md do what their papers say, with nothing done for them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import pages
from stoic import Box, Choice, Finite, GaussianProcess, Learner, Prior, Waiting, recipes, testing
from stoic.adversaries import Gaussian
from stoic.confidence import Fixed
from stoic.domains import Lattice
from stoic.environment import Environment
from stoic.kernels import RBF
from stoic.policies import UCB, Policy
from stoic.problems.base import Optimum
from stoic.simulate import run


@pytest.fixture(scope="module")
def page():
    return pages.run(pages.ROOT / "docs/extending.md")


def draw(kernel, points, seed):
    """A function from the prior, as its values on ``points``."""
    K = kernel(points, points) + 1e-9 * np.eye(len(points))
    return np.linalg.cholesky(K) @ np.random.default_rng(seed).standard_normal(len(points))


GRID = Finite(np.linspace(-1.0, 3.0, 25))
PRIOR = Prior(RBF(0.4), 0.04)

# --- (a) distances, a context, an input that moves -----------------------------------------------


class Known:
    """A belief that is f itself, or f within ``std``."""

    stance, information, distrusted, kappa = None, 0.0, 0, 1.0

    def __init__(self, mean, std):
        self.mean, self.std, self.n = mean, std, 0

    def __call__(self, domain, observations, previous=None):
        self.n = len(observations)
        return self

    def on(self, points):
        return self.mean, self.std

    def fantasise(self, x, arms=None, at_most=math.inf):
        return self


def literal_radius(f, threshold, points, moves, row):
    """How far ``row`` can be moved, by comparing it with every other row."""
    if f[row] < threshold:
        return -math.inf
    fixed = [k for k in range(points.shape[1]) if k not in moves]
    reach, diameter = math.inf, 0.0
    for a, x in enumerate(points):
        for z in points:
            if all(x[k] == z[k] for k in fixed):
                diameter = max(diameter, math.dist(x[list(moves)], z[list(moves)]))
        if all(x[k] == points[row][k] for k in fixed) and f[a] < threshold:
            reach = min(reach, math.dist(x[list(moves)], points[row][list(moves)]))
    return min(reach, diameter)


@pytest.mark.parametrize("moves", [(0, 1), (1,)])
@pytest.mark.parametrize("seed", range(5))
def test_with_the_true_f_the_choice_is_the_satisficing_point(page, seed, moves):
    domain = Box([-2.0, 10.0], [3.0, 40.0]).grid([6, 8])
    f = draw(RBF(np.array([1.5, 9.0])), domain.points, seed)
    policy = page.Satisficing(float(np.quantile(f, 0.4)), moves)
    learner = Learner(domain, Known(f, np.zeros(48)), Fixed(2.0), policy)
    radii = [literal_radius(f, policy.threshold, domain.points, moves, row) for row in range(48)]

    choice = learner.ask()
    assert choice.arm == int(np.argmax(radii))
    assert choice.notes["radius"] == choice.notes["certified"] == pytest.approx(max(radii))

    column = domain.points[:, 1] == domain.points[3, 1]  # a context
    choice = learner.ask(among=column)
    there = np.flatnonzero(column)
    assert choice.arm == there[np.argmax(np.array(radii)[there])]


def test_certificates_hold_while_f_is_in_the_band(page):
    domain = Box([0.0, 0.0], [1.0, 1.0]).grid(8)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        f, std = draw(RBF(0.4), domain.points, seed), rng.uniform(0.0, 0.4, 64)
        mean = f + rng.uniform(-2.0, 2.0, 64) * std
        policy = page.Satisficing(0.0, (0, 1))
        choice = Learner(domain, Known(mean, std), Fixed(2.0), policy).ask()
        if choice.notes["reachable"]:
            true = literal_radius(f, 0.0, domain.points, (0, 1), choice.arm)
            assert choice.notes["certified"] <= true <= choice.notes["radius"] + 1e-12
        else:
            assert f.max() < 0.0


def test_a_threshold_out_of_reach_is_said_to_be(page):
    domain = Finite(np.arange(5.0))
    f = np.array([0.0, 0.3, 0.1, 0.7, 0.2])
    learner = Learner(domain, Known(f, np.zeros(5)), Fixed(), page.Satisficing(0.9, (0,)))
    choice = learner.ask(among=[0, 1, 2])
    assert (choice.arm, choice.notes) == (1, {"reachable": False})


def test_satisficing_refuses_a_box(page):
    with pytest.raises(ValueError, match=r"Satisficing needs a finite domain, got Box"):
        Learner(Box([0.0], [1.0]), GaussianProcess(PRIOR), Fixed(), page.Satisficing(0.0, (0,)))


def test_moved_inputs_answer_their_own_questions(page):
    """Two questions are open, both inputs are moved, the later result comes first."""
    learner = Learner(GRID, GaussianProcess(PRIOR), Fixed(), page.Satisficing(-3.0, (0,)))
    early, late = learner.ask(2)
    learner.tell(GRID.points[7], 0.1, choice=late)
    assert learner.pending == [early]
    learner.tell(GRID.points[9], 0.2)  # nobody chose row 9: the oldest question
    assert learner.pending == []
    assert learner.observations.arms.tolist() == [7, 9]


# --- (b) a learner of learners -------------------------------------------------------------------


class Stuck(Policy):
    """Always the same arm."""

    needs_finite = True

    def __init__(self, arm):
        self.arm = arm

    def start(self, domain):
        return None

    def choose(self, view, state, n):
        return [Choice(view.domain.points[self.arm], self.arm) for _ in range(n)], None


class Hill:
    """A function with values in [0.1, 0.9] on GRID."""

    name, domain = "hill", GRID

    def value(self, x):
        return 0.1 + 0.8 * np.exp(-((x[:, 0] - 1.0) ** 2))

    @property
    def optimum(self):
        return Optimum(GRID.points[12], float(self.value(GRID.points).max()))


def three(page, **settings):
    """Two honest learners with different kernels, and one that promises much and does little."""
    good = [recipes.gp_ucb(GRID, Prior(RBF(s), 0.01), confidence=Fixed(2.0)) for s in (0.5, 1.0)]
    bad = Learner(GRID, GaussianProcess(PRIOR), Fixed(), Stuck(0))
    bounds = [lambda N: 2.0 * N**0.5, lambda N: 2.0 * N**0.5, lambda N: N**0.5]
    return page.Balanced([*good, bad], bounds, **settings)


@pytest.mark.parametrize("everything", [False, True])
def test_balancing_plays_all_and_drops_the_one_that_breaks_its_promise(page, everything):
    balanced = three(page, everything=everything)
    trace = run(balanced, Environment(Hill(), Gaussian(0.05), seed=3), 500, recommend=True)
    assert balanced.plays.min() > 0
    assert balanced.plays.sum() == 500
    assert balanced.active == [0, 1]
    assert trace.regret[-50:].mean() < 0.05 < trace.regret[:30].mean()
    assert trace.inference_regret < 0.05
    told = [len(learner.observations) for learner in balanced.learners]
    assert told == ([500, 500, 500] if everything else balanced.plays.tolist())


def test_balancing_keeps_the_last_learner(page):
    worst = Learner(GRID, GaussianProcess(PRIOR), Fixed(), Stuck(0))
    balanced = page.Balanced([worst], [lambda N: 0.0])
    run(balanced, Environment(Hill(), seed=0), 50)
    assert balanced.active == [0]


def test_balancing_in_parallel_gives_rewards_to_those_who_asked(page):
    balanced = three(page, everything=True)
    value = Hill().value(GRID.points)
    asked = balanced.ask(12)
    owners = [choice.notes["learner"] for choice in asked]
    assert set(owners) == {0, 1, 2}
    for choice in reversed(asked):
        balanced.tell(choice.x, value[choice.arm], choice=choice)
    assert balanced.plays.tolist() == [owners.count(i) for i in range(3)]
    for i, learner in enumerate(balanced.learners):
        assert learner.pending == []  # what others asked took none of its own questions away
        own = [value[choice.arm] for choice in asked if choice.notes["learner"] == i]
        assert balanced.rewards[i] == pytest.approx(sum(own))
    balanced.tell(GRID.points[5], 0.7)  # nobody's question
    assert balanced.plays.sum() == 12
    assert [len(learner.observations) for learner in balanced.learners] == [13, 13, 13]


def test_balancing_passes_contexts_on_and_waits_when_all_wait(page):
    phased = [recipes.rgp_pe(GRID, PRIOR, confidence=Fixed(3.0)) for _ in range(2)]
    balanced = page.Balanced(phased, [lambda N: N**0.5] * 2)
    handed = balanced.ask(1000)
    assert 4 <= len(handed) < 1000
    assert balanced.ask(3) == []
    with pytest.raises(Waiting):
        balanced.ask()
    rows = [3, 8, 21]
    contextual = page.Balanced(
        [recipes.gp_ucb(GRID, PRIOR, confidence=Fixed(2.0)) for _ in range(2)],
        [lambda N: N**0.5] * 2,
    )
    for _ in range(10):
        choice = contextual.ask(among=rows)
        assert choice.arm in rows
        contextual.tell(choice.x, 0.5)


# --- the contract ---------------------------------------------------------------------------------


def test_every_part_on_the_page_keeps_the_contract(page):
    """What the conformance tests ask of the library's own parts, the page's parts pass too."""
    domain = Finite(4.0 + np.linspace(0.0, 1.0, 30))
    prior = Prior(RBF(0.2), 1.0)

    def best_of():
        model = page.BestOf((Prior(RBF(1.0), 0.1), Prior(RBF(3.0), 0.1)))
        return Learner(Box([4.0], [12.0]), model, Fixed(2.0), UCB(), 0)

    absurd = testing.example_observations(domain, 24, 3, True)
    posterior = GaussianProcess(prior, page.Possible(-2.0, 2.0))(domain, absurd)
    testing.check_defence(page.Possible(-2.0, 2.0))
    testing.check_confidence(page.Budgeted(Fixed(1.0), 3.0), [posterior])
    for policy in (page.Explore(), page.Satisficing(0.1, (0,))):
        testing.check_policy(policy)
    for make in (best_of, lambda: page.rgp_ucb(domain, prior, budget=2.0)):
        testing.check_learner(make)


# --- what the seams themselves promise -----------------------------------------------------------


def test_a_context_on_a_box_is_a_lattice_with_one_value():
    box = Box([0.0, -1.0], [1.0, 1.0])
    learner = Learner(box, GaussianProcess(PRIOR), Fixed(), UCB(), seed=0)
    learner.tell([[0.2, 0.0], [0.7, 0.3]], [0.1, 0.4])
    given = Lattice(np.array([1]), np.array([[0.25]]))
    for choice in learner.ask(4, among=Box(box.lower, box.upper, (given,))):
        assert choice.x[1] == 0.25


def test_a_part_that_sticks_out_of_the_box_is_refused():
    box = Box([0.0, -1.0], [1.0, 1.0])
    learner = Learner(box, GaussianProcess(PRIOR), Fixed(), UCB(), seed=0)
    with pytest.raises(ValueError, match=r"coordinate 1 is 1\.5, outside"):
        learner.ask(among=Box([0.0, 0.0], [1.0, 1.5]))
    assert learner.pending == []


def test_a_thousand_open_questions_are_answered_in_any_order():
    """An epoch may be open as a whole; the choices of one point are told apart."""
    learner = Learner(GRID, GaussianProcess(PRIOR), Fixed(), Stuck(3))
    open_ = learner.ask(1000)
    order = np.random.default_rng(0).permutation(1000)
    for i in order[:600]:
        learner.tell(GRID.points[3], 0.0, choice=open_[i])
    assert learner.pending == [open_[i] for i in sorted(order[600:])]
    learner.tell(GRID.points[3], 0.0)
    assert learner.pending == [open_[i] for i in sorted(order[600:])][1:]


def test_a_choice_per_result_or_none_is_stored():
    learner = Learner(GRID, GaussianProcess(PRIOR), Fixed(), UCB())
    choices = learner.ask(2)
    with pytest.raises(ValueError, match="Got 1 inputs but 2 choices"):
        learner.tell(choices[0].x, 0.0, choice=choices)
    assert len(learner) == 0
    assert learner.pending == choices
    learner.tell(np.array([c.x for c in choices]), [0.0, 0.1], choice=choices)
    assert learner.pending == []
