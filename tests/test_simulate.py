import math

import numpy as np
import pytest

from stoic import Learner, recipes
from stoic.adversaries import (
    Adversary,
    Flip,
    Gaussian,
    Later,
    LowestBound,
    RandomMove,
    Replace,
    Unlimited,
)
from stoic.data import Choice, Recommendation
from stoic.environment import Environment
from stoic.kernels import RBF
from stoic.pending import WaitingError
from stoic.policies import Band
from stoic.posteriors import Prior
from stoic.problems import forrester, hosaki
from stoic.problems.base import Optimum
from stoic.simulate import run


class Memory:
    """Asks at random and remembers what it was told."""

    def __init__(self, domain, seed=0):
        self.domain = domain
        self.rng = np.random.default_rng(seed)
        self.told = []

    def ask_batch(self, n):
        return [Choice(x) for x in self.domain.sample(n, self.rng)]

    def tell(self, x, y):
        assert len(x) == len(y)
        self.told += list(zip(x.copy(), y.tolist(), strict=True))

    def active(self):
        return np.ones(len(self.domain), dtype=bool)

    def recommend(self):
        x = self.domain.spread(1, np.random.default_rng(0))[0]
        return Recommendation(x, 0.0, 0.0, 0.0, x, 0.0)


def test_a_trace_is_what_the_learner_was_told():
    problem = hosaki()
    learner = Memory(problem.domain)
    trace = run(learner, Environment(problem, Gaussian(0.1), seed=2), rounds=7, initial=4)
    assert len(trace) == 11
    assert trace.initial == 4
    np.testing.assert_array_equal(trace.executed, [x for x, _ in learner.told])
    np.testing.assert_array_equal(trace.observed, [y for _, y in learner.told])
    np.testing.assert_allclose(trace.value, problem.value(trace.executed), rtol=1e-12)
    np.testing.assert_array_equal(trace.chosen, trace.executed)


def test_regrets():
    problem = forrester()
    trace = run(Memory(problem.domain), Environment(problem, Gaussian(5.0), seed=1), 20, initial=5)
    gap = problem.optimum.value - problem.value(trace.executed)
    np.testing.assert_allclose(trace.regret, gap, atol=1e-12)  # noiseless, all 25 rows
    np.testing.assert_allclose(trace.cumulative_regret, np.cumsum(gap), rtol=1e-12)
    np.testing.assert_allclose(trace.simple_regret[-1], gap.min(), atol=1e-12)
    assert np.all(np.diff(trace.simple_regret) <= 0)
    assert math.isnan(trace.inference_regret)


def test_recommendation_is_scored_by_the_true_function():
    problem = forrester()
    learner = Memory(problem.domain)
    trace = run(learner, Environment(problem, Gaussian(9.0)), 3, recommend=True)
    expected = problem.optimum.value - problem.value(learner.recommend().x[None])[0]
    assert trace.inference_regret == pytest.approx(expected)


def test_methods_meet_the_same_design_noise_and_lies():
    def play(seed):
        problem = forrester()
        adversary = Adversary(Replace({2: math.nan, 3: -math.inf}), Unlimited())
        environment = Environment(problem, Gaussian(1.0), adversary, seed=5)
        return run(Memory(problem.domain, seed), environment, 6, initial=3)

    one, other = play(1), play(2)
    assert not np.array_equal(one.executed, other.executed)
    np.testing.assert_array_equal(one.executed[:3], other.executed[:3])
    np.testing.assert_array_equal(one.observed[:3], other.observed[:3])
    clean = ~one.corrupted
    noise_one, noise_other = (t.observed - t.value for t in (one, other))
    np.testing.assert_allclose(noise_one[clean], noise_other[clean], atol=1e-12)
    np.testing.assert_array_equal(one.corrupted, [0, 0, 0, 0, 1, 1, 0, 0, 0])
    assert math.isnan(one.observed[4])
    assert one.observed[5] == -math.inf
    assert np.all(np.isfinite(one.cumulative_regret))


def test_a_played_environment_goes_on():
    problem = forrester()
    environment = Environment(problem, Gaussian(1.0), seed=0)
    learner = Memory(problem.domain)
    whole = run(Memory(problem.domain), Environment(problem, Gaussian(1.0), seed=0), 10)
    parts = [run(learner, environment, 4), run(learner, environment, 6)]
    np.testing.assert_array_equal(np.concatenate([p.observed for p in parts]), whole.observed)


def test_an_initial_design_is_a_number_or_points():
    problem = forrester()
    trace = run(Memory(problem.domain), Environment(problem), 1, initial=[[0.25], [0.5]])
    assert trace.initial == 2
    for wrong, sentence in ((-1, "at least 0, got -1"), ([[math.nan]], "must be finite")):
        with pytest.raises(ValueError, match=sentence):
            run(Memory(problem.domain), Environment(problem), 5, initial=wrong)


def test_negative_rounds_are_refused():
    with pytest.raises(ValueError, match="at least 0, got -1"):
        run(Memory(forrester().domain), Environment(forrester()), -1)


def test_a_batch_is_asked_at_once_told_together_and_cut_at_the_end():
    class Planner(Memory):
        """Hands out at most three at a time, as at the end of an epoch."""

        asked = ()

        def ask_batch(self, n):
            self.asked = (*self.asked, n)
            return super().ask_batch(min(n, 3))

    problem = hosaki()
    one, many = Planner(problem.domain), Planner(problem.domain)
    single = run(one, Environment(problem, Gaussian(0.1), seed=2), rounds=11)
    batched = run(many, Environment(problem, Gaussian(0.1), seed=2), rounds=11, batch=5)
    assert many.asked == (5, 5, 5, 2)
    np.testing.assert_array_equal(single.observed, batched.observed)
    np.testing.assert_array_equal([y for _, y in many.told], batched.observed)
    with pytest.raises(ValueError, match="at least one"):
        run(many, Environment(problem), 3, batch=0)


def test_what_was_chosen_and_what_was_executed_are_both_kept():
    problem = hosaki().on_grid(9)
    learner = Memory(problem.domain)
    world = Environment(problem, perturbation=RandomMove(2.0), seed=4)
    trace = run(learner, world, 30, initial=3)
    np.testing.assert_array_equal(trace.chosen[:3], trace.executed[:3])  # the design is clean
    moved = np.linalg.norm(trace.chosen - trace.executed, axis=1)
    assert moved.max() > 1.0
    assert moved.max() <= 2.0 + 1e-9
    np.testing.assert_array_equal(trace.executed, [x for x, _ in learner.told])
    np.testing.assert_array_equal(trace.value, problem.value(trace.executed))


def test_a_perturbation_sees_the_band_of_the_learner():
    class Fearful(Memory):
        """Believes that row 7 is the worst."""

        def band(self):
            return Band(self, 1.0)

        def predict(self, x):
            return -1.0 * (np.arange(len(x)) == 7), np.zeros(len(x))

    problem = hosaki().on_grid(5)
    world = Environment(problem, perturbation=LowestBound(100.0))
    trace = run(Fearful(problem.domain), world, 5)
    np.testing.assert_array_equal(trace.executed, problem.domain.points[[7] * 5])
    with pytest.raises(ValueError, match="needs the learner's band"):
        run(Memory(problem.domain), world, 1)


def test_an_adversary_sees_what_the_learner_has_ruled_out():
    class Sure(Memory):
        def active(self):
            return np.arange(len(self.domain)) == 7

    problem = hosaki().on_grid(5)
    for learner, starts in ((Memory(problem.domain), False), (Sure(problem.domain), True)):
        world = Environment(problem, adversary=Adversary(Later(Flip()), Unlimited()))
        assert run(learner, world, 10).corrupted.any() == starts


def test_a_learner_that_waits_is_not_waited_for():
    problem = hosaki().on_grid(6)
    player = Learner(problem.domain, recipes.rgp_pe(prior=Prior(RBF(1.0), 0.1)), seed=0)
    player.ask()
    with pytest.raises(WaitingError, match=r"suggests nothing in round \d+: it waits for results"):
        run(player, Environment(problem), 50)


def test_a_maximum_without_its_point_is_refused_before_the_first_round():
    class Peak:
        name, domain, optimum = "peak", hosaki().on_grid(5).domain, 1.0

        def value(self, x):
            return np.zeros(len(x))

    learner = Memory(Peak.domain)
    with pytest.raises(TypeError, match=r"an Optimum\(x, value\), got 1\.0"):
        run(learner, Environment(Peak()), 5)
    assert not learner.told


def test_an_optimum_that_f_exceeds_is_said():
    class Low:
        name, domain = "low", hosaki().on_grid(5).domain
        optimum = Optimum(domain.points[0], 1.0)

        def value(self, x):
            return np.where(x[:, 0] > self.domain.points[:, 0].mean(), 1.5, np.nan)

    with pytest.warns(UserWarning, match=r"optimum of the problem is 1, but f is 1\.5 at"):
        trace = run(Memory(Low.domain), Environment(Low()), 5)
    assert np.nanmin(trace.regret) == -0.5
