"""Verified improvement: its surface, what it measures again, where it goes at a loss."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats

from stoic import recipes
from stoic.confidence import Fixed
from stoic.data import Choice
from stoic.defences import Plateau, Trust
from stoic.domains import Box, Finite, Lattice
from stoic.kernels import Matern52, Scaled
from stoic.learner import Learner
from stoic.models import GaussianProcess
from stoic.models.window import Bounds
from stoic.policies import Initial, LogExpectedImprovement, VerifiedImprovement
from stoic.posteriors import Prior
from stoic.posteriors.outlier import OutlierOdds
from stoic.recipes import Parts

BOX = Box([0.0, -1.0], [4.0, 1.0])
PRIOR = Prior(Scaled(Matern52(np.array([1.0, 0.5])), 2.0), 0.05, 0.3)


def learner(domain=BOX, defence=None, prior=PRIOR, **options):
    model = GaussianProcess(prior, defence or Trust())
    return Learner(domain, Parts(model, Fixed(2.0), VerifiedImprovement(**options)), seed=0)


def bowl(x):
    return -((x[0] - 3.0) ** 2) - 4.0 * (x[1] - 0.2) ** 2


def test_the_surface_is_the_improvement_of_the_mean_by_a_noisy_observation():
    rng = np.random.default_rng(0)
    agent = learner()
    agent.tell(BOX.sample(8, rng), rng.standard_normal(8))
    x = BOX.sample(20, rng)
    mean, std = agent.posterior.predict(x)
    surface = LogExpectedImprovement(agent.posterior, 0.7, noise=PRIOR.noise)
    for i in range(20):
        # The mean at x once y ~ N(mean, std^2 + noise) is observed there.
        spread = math.hypot(std[i], math.sqrt(PRIOR.noise))
        gain = std[i] ** 2 / spread**2

        def integrand(u, i=i, spread=spread, gain=gain):
            return max(mean[i] + gain * spread * u - 0.7, 0.0) * stats.norm.pdf(u)

        kink = (0.7 - mean[i]) / (gain * spread)
        expected = integrate.quad(integrand, kink, kink + 40.0, epsabs=1e-14)[0]
        if expected > 1e-10:
            assert surface(x[[i]])[0] == pytest.approx(math.log(expected), abs=1e-5)
    height, slope = surface.with_gradient(x)
    assert_allclose(height, surface(x), rtol=1e-12)
    step = 1e-6
    for k in range(2):
        moved = np.zeros(2)
        moved[k] = step
        numeric = (surface(x + moved) - surface(x - moved)) / (2.0 * step)
        assert_allclose(slope[:, k], numeric, rtol=1e-4, atol=1e-4)


def test_an_incumbent_that_others_contradict_is_measured_again_once():
    # Nothing is left to be improved on a fine grid, and 1 of 21 results is too good by 1.
    domain = Finite(np.linspace(0.0, 1.0, 21)[:, None])
    agent = learner(domain, prior=Prior(Scaled(Matern52(0.4), 1.0), 1e-3))
    y = -((domain.points[:, 0] - 0.3) ** 2)
    told = y + (np.arange(21) == 16)
    agent.tell(domain.points, told)
    choice = agent.ask()
    assert choice.notes == {"verified": True}
    assert choice.arm == 16
    agent.tell(choice.x, y[16])
    agent.tell(choice.x, y[16])
    assert agent.ask().arm != 16


def with_a_huge_result(rng):
    """A learner of thirty results, of which the one at the returned input is wrong."""
    agent = learner(defence=Plateau(half_width=25.0, shape=0.1, centre=-4.0))
    x = BOX.sample(30, rng)
    y = np.array([bowl(point) for point in x])
    y[7] = 1e6
    agent.tell(x, y)
    return agent, x[7]


def test_a_rejected_result_that_would_be_the_best_is_measured_again_and_given_up():
    agent, wrong = with_a_huge_result(np.random.default_rng(2))
    looks = 0
    for _ in range(12):
        choice = agent.ask()
        looks += bool(choice.notes)
        if choice.notes:
            assert_array_equal(choice.x, wrong)
        agent.tell(choice.x, bowl(choice.x))
    assert 1 <= looks <= 4


@pytest.mark.parametrize("said", [True, False])
def test_a_repeat_that_is_executed_elsewhere_is_not_asked_for_ever(said):
    """It answers nothing there: three times, and the search goes on."""
    rng = np.random.default_rng(0)
    agent, wrong = with_a_huge_result(rng)
    asked = 0
    for _ in range(12):
        choice = agent.ask()
        asked += (choice.x == wrong).all()
        executed = np.clip(choice.x + rng.uniform(-0.1, 0.1, 2), BOX.lower, BOX.upper)
        agent.tell(executed, bowl(executed), choice=choice if said else None)
    assert asked == 3
    assert len(agent.history.moved) == 12
    agent.tell(agent.ask().x, 0.0)
    assert len(agent.history.moved) == 12
    with pytest.raises(ValueError, match="A choice of this domain has 2 coordinates"):
        agent.tell(wrong, 0.0, choice=Choice(np.zeros(3)))
    assert len(agent) == 43


def test_two_contradictions_end_what_nothing_else_is_worth_more_than():
    domain = Finite(np.linspace(0.0, 1.0, 21)[:, None])
    y = -((domain.points[:, 0] - 0.3) ** 2)
    prior = Prior(Scaled(Matern52(0.4), 1.0), 1e-5)
    agent = learner(domain, Plateau(half_width=2.0, shape=0.1, centre=0.0), prior)
    agent.tell(domain.points, y + 9.0 * (np.arange(21) == 16))
    asked = []
    for _ in range(6):
        asked.append(agent.ask().arm)
        agent.tell(domain.points[asked[-1]], y[asked[-1]])
    assert asked[:2] == [16, 16]
    assert 16 not in asked[2:]


@pytest.mark.long
def test_failures_by_chance_hide_no_summit():
    """Half of all runs fail, wherever they are: as close to the optimum as half of the trials."""
    near = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        agent = Learner(BOX, recipes.robust(), seed=seed)
        for _ in range(40):
            choice = agent.ask()
            agent.tell(choice.x, np.nan if rng.random() < 0.5 else bowl(choice.x))
        near.append(bowl(agent.recommend().x))
    assert min(near) > -1e-3


def test_a_spot_that_always_fails_is_left():
    agent = Learner(BOX, recipes.robust(), seed=0)
    failed = 0
    for _ in range(40):
        choice = agent.ask()
        off = np.abs((choice.x - np.array([3.0, 0.2])) / BOX.widths).max() < 0.02
        failed += off
        agent.tell(choice.x, np.nan if off else bowl(choice.x))
    assert 1 <= failed <= 8
    assert bowl(agent.recommend().x) > -0.05


def test_a_finite_domain_without_noise_is_visited_whole():
    points = np.arange(30.0)[:, None]
    agent = Learner(Finite(points), recipes.robust(), seed=0)
    for _ in range(30):
        choice = agent.ask()
        agent.tell(choice.x, 1.0)
    assert len(np.unique(agent.observations.x)) == 30


def test_a_flat_start_is_searched():
    agent = Learner(BOX, recipes.robust(), seed=0)
    for _ in range(15):
        choice = agent.ask()
        agent.tell(choice.x, 0.0)
    assert len(np.unique(agent.observations.x.round(6), axis=0)) == 15


@pytest.mark.parametrize("fails", [math.nan, "infeasible"])
def test_while_all_results_are_equal_no_corner_and_no_failure_is_sought(fails):
    agent = Learner(Box([0.0] * 4, [1.0] * 4), seed=0)
    asked = []
    for _ in range(40):
        asked.append(agent.ask().x)
        if asked[-1][0] < 0.4:
            agent.tell(asked[-1], 1.0)
        elif fails == "infeasible":
            agent.tell(asked[-1], failed="infeasible")
        else:
            agent.tell(asked[-1], fails)
    later = np.array(asked[15:])
    assert np.mean(np.abs(later - 0.5) < 0.4) > 0.6  # of the coordinates; .8 at random
    assert np.mean(later[:, 0] >= 0.4) < 0.3  # .6 at random
    assert len(np.unique(later, axis=0)) == 25


def test_equal_results_of_integers_are_each_of_another_one():
    agent = Learner(Box([0.0], [19.0], [Lattice([0], np.arange(20.0))]), seed=0)
    for _ in range(20):
        agent.tell(agent.ask().x, 1.0)
    assert len(np.unique(agent.observations.x)) >= 19


def test_beside_a_single_result_failures_are_not_repeated():
    """All results are equal, so that points are drawn at random."""
    box = Box([0.0, 0.0], [1.0, 1.0])
    agent = Learner(box, recipes.robust(), seed=0)
    x = box.spread(10, np.random.default_rng(0))
    agent.tell(x, np.where(np.arange(10) == x.sum(axis=1).argmin(), 1.0, math.nan))
    asked = []
    for _ in range(8):
        asked.append(agent.ask().x)
        agent.tell(asked[-1], math.nan)
    apart = np.abs(np.array(asked)[:, None] - np.array(asked)).max(axis=2) + np.eye(8)
    assert apart.min() > 0.001


def test_a_region_without_results_is_left_and_chance_is_not():
    rng, box = np.random.default_rng(3), Box([0.0, 0.0], [1.0, 1.0])

    def failures(fails):
        agent = Learner(box, recipes.robust(policy=Initial(VerifiedImprovement(), 10)), seed=1)
        failed = 0
        for t in range(30):
            x = agent.ask().x
            nan = fails(x)
            failed += nan and t >= 10
            agent.tell(x, math.nan if nan else -((x[0] - 0.4) ** 2) - (x[1] - 0.35) ** 2)
        return failed

    # Of 20. With other last digits in 12 runs always the same.
    assert failures(lambda x: x[0] + x[1] > 1.0) <= 5  # all are near the edge
    assert failures(lambda x: rng.random() < 0.5) > 5


@pytest.mark.parametrize("n", [1, 3])
def test_a_batch_asks_different_points(n):
    rng = np.random.default_rng(4)
    agent = Learner(BOX, recipes.robust(), seed=0)
    x = BOX.sample(12, rng)
    agent.tell(x, [bowl(point) for point in x])
    choices = agent.ask_batch(n)
    assert len({tuple(choice.x) for choice in choices}) == n


GRID = np.linspace(0.0, 4.0, 41)[:, None]


def on_the_grid(rows, results, limited=None):
    model = GaussianProcess(Prior(Scaled(Matern52(np.ones(1)), 2.0), 0.05, 0.0), Trust())
    agent = Learner(Finite(GRID), Parts(model, Fixed(2.0), VerifiedImprovement()), seed=0)
    for row, result in zip(rows, results, strict=True):
        agent.tell(GRID[row], result, constraints=limited and {"c": limited(row)})
    return agent


def places(rows, results, n, out=(), without=None, limited=None):
    """Choices of a new learner, ``out`` pending; it may not have seen one of the rows."""
    seen = [k for k in range(len(rows)) if k != without]
    agent = on_the_grid([rows[k] for k in seen], [results[k] for k in seen], limited)
    return [choice.arm for choice in agent.ask_batch(n, pending=GRID[list(out)])]


SEEN = [3, 12, 21, 38], [0.1, 0.4, 3.0, 0.2]


@pytest.mark.parametrize("out", [[], [30], [2, 30]])
def test_every_other_choice_late_in_a_batch_is_that_without_the_incumbent(out):
    """The literal one: of a learner that never saw it, and has the same points pending."""
    got, before = places(*SEEN, 9, out), list(out)
    doubts = [k >= 4 and (4 + len(out) + k) % 2 == 1 for k in range(9)]
    for place, doubt in zip(got, doubts, strict=True):
        assert place == places(*SEEN, 1, before, without=2 if doubt else None)[0]
        before.append(place)


def test_a_result_or_a_failure_ends_a_batch():
    agent = on_the_grid(*SEEN)
    agent.ask_batch(3)
    agent.ask()
    assert agent.history.asked == 4
    agent.tell(GRID[7], 0.5)
    assert agent.history.asked == 0
    agent.ask()
    agent.tell(GRID[5], failed="transient")
    assert agent.history.asked == 0


@pytest.mark.parametrize("limited", [None, lambda row: 0.1 * row - 3.9])
def test_an_incumbent_that_was_measured_twice_is_not_doubted(limited):
    """With a constraint, which holds up to row 39, the same."""
    rows, results = SEEN
    got = np.array(places(rows, results, 8, limited=limited))
    again = places([*rows, 21, 3], [*results, 3.0, 0.1], 8, limited=limited)
    assert max(abs(got - 21)) > 8
    assert max(abs(np.array(again) - 21)) <= 8


def test_with_a_constraint_it_is_the_best_of_what_satisfies_it_that_is_doubted():
    """Row 3 has the largest result, and nobody would have it."""
    rows, results = SEEN
    got = places(rows, [5.0, *results[1:]], 8, limited=lambda row: 1.0 - 0.1 * row)
    doubts = [k for k in range(8) if k >= 4 and k % 2 == 1]
    assert [k for k, place in enumerate(got) if abs(place - 21) > 8] == doubts


def test_the_recommendation_says_what_it_rests_on():
    rng = np.random.default_rng(5)
    agent = Learner(BOX, recipes.robust(), seed=0)
    x = BOX.sample(20, rng)
    agent.tell(x, [bowl(point) for point in x])
    notes = agent.recommend().notes
    assert notes["repeats"] == 1
    assert 0.0 <= notes["outlier"] < 0.5


class Share(OutlierOdds):
    """One observation in ``inliers`` is an outlier; the best one is alone by ``outliers``."""

    def share(self, observations, posterior):
        return 1.0 / self.inliers

    def given_the_others(self, domain, observations, posterior):
        p, mean, _ = super().given_the_others(domain, observations, posterior)
        best = observations.observed == observations.observed.max()
        return p, mean, posterior.max_variance**0.5 * np.where(best, self.outliers, 0.01)


WINDOW = Bounds(exact=20, chosen=24, full=32, recent=6, local=6)


@pytest.mark.parametrize(
    ("bounds", "one_in", "alone", "recommended"),
    [(WINDOW, 10.0, 0.3, False), (WINDOW, 10.0, 0.2, True), (WINDOW, 50.0, 0.3, True),
     (None, 10.0, 0.3, True)],
)  # fmt: skip
def test_late_what_stands_alone_is_not_recommended(bounds, one_in, alone, recommended):
    x = BOX.sample(40, np.random.default_rng(6))
    y = np.array([bowl(point) for point in x])

    parts = recipes.robust()(BOX)
    model = replace(parts.model, bounds=bounds)
    policy = VerifiedImprovement(Share(alone, one_in))
    agent = Learner(BOX, replace(parts, model=model, policy=policy), seed=0)
    agent.tell(x, y)
    assert (agent.recommend().x == x[y.argmax()]).all() == recommended


@pytest.mark.parametrize(
    ("bounds", "again", "asked"),
    [
        (WINDOW, [], True),
        (WINDOW, [-20.0], False),  # outliers both, but this one is the nearer by far
        (WINDOW, [-60.0], True),
        (WINDOW, [-60.0, -20.0], False),
        (WINDOW, [100.0, -20.0], True),  # two agree that it is this good
        (None, [-20.0], True),
    ],
)
def test_late_a_repeat_that_is_nearer_to_what_others_expect_ends_it(bounds, again, asked):
    rng = np.random.default_rng(7)
    x = BOX.sample(40, rng)
    y = np.array([bowl(point) for point in x])
    parts = recipes.robust()(BOX)
    agent = Learner(BOX, replace(parts, model=replace(parts.model, bounds=bounds)), seed=0)
    agent.tell(np.delete(x, 20, axis=0), np.delete(y, 20))
    agent.tell(np.tile(x[20], (1 + len(again), 1)), [100.0, *again])
    view, policy = agent.view(), agent.policy
    policy = policy if isinstance(policy, VerifiedImprovement) else policy.then
    trust = view.band().posterior.trust(view.observations)
    here = (view.observations.x == x[20]).all(axis=1)
    assert (trust[here] < 0.5).all()
    trusted = np.flatnonzero(trust >= 0.5)
    found, worth = policy._verification(view, trust, trusted)
    assert (found is not None and (found == x[20]).all() and worth > 0.0) == asked


@pytest.mark.parametrize("kind", ["infeasible", "transient", "bad", None])
def test_a_finite_set_is_explored_where_its_first_row_fails(kind):
    agent = Learner(Finite(np.linspace(0.0, 1.0, 20)[:, None]), seed=0)
    rows = []
    for _ in range(12):
        choice = agent.ask()
        rows.append(choice.arm)
        if choice.arm == 0 and kind is not None:
            agent.tell(choice.x, failed=kind)
        else:
            agent.tell(choice.x, math.nan if choice.arm == 0 else -((choice.x[0] - 0.7) ** 2))
    assert rows.count(0) <= 3
    assert len(set(rows)) > 8


def test_the_best_is_asked_for_where_the_rest_fails():
    agent = Learner(Finite(np.linspace(0.0, 1.0, 20)[:, None]), seed=0)
    for _ in range(25):
        choice = agent.ask()
        agent.tell(choice.x, math.nan if choice.x[0] > 0.6 else choice.x[0])
    assert [choice.arm for choice in agent.ask_batch(3)] == [11, 11, 11]


@pytest.mark.parametrize("surprise", [0.0, 1.0, math.nan])
def test_surprise_is_a_share(surprise):
    with pytest.raises(ValueError, match="share"):
        VerifiedImprovement(surprise=surprise)
