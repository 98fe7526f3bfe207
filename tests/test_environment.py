import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoic.adversaries import (
    Adversary,
    Attack,
    Frequency,
    Gaussian,
    Perturbation,
    RandomMove,
    Replace,
    Unlimited,
    cube_root,
)
from stoic.adversaries.frequency import SETTINGS
from stoic.environment import Environment
from stoic.problems import forrester, mccormick

LIES = (1e300, -1e300, math.inf, -math.inf, math.nan, 0.0, -10.0)


class Everything(Attack):
    """Lies in every round, at random, with its own stream."""

    def rewrite(self, seen):
        return LIES[seen.rng.integers(len(LIES))]


def steps(environment, xs):
    return [environment.step(np.array([x])) for x in xs]


@pytest.mark.parametrize(
    "part",
    [{"noise": 0.1}, {"noise": Gaussian}, {"adversary": Replace(1.0)}, {"perturbation": 0.1}],
)
def test_parts_of_another_kind_are_refused_with_what_they_are(part):
    (name,) = part
    with pytest.raises(TypeError, match=f"^{name} is an? .*got"):
        Environment(mccormick(), **part)


@pytest.mark.parametrize("parts", [(Replace(1.0), 5), (Replace, Unlimited()), (3.0,)])
def test_an_adversary_of_other_parts_is_refused(parts):
    with pytest.raises(TypeError, match=r"made of an attack and a budget, .* got"):
        Adversary(*parts)


def test_without_noise_and_adversary_the_value_is_observed():
    problem = mccormick()
    outcome = Environment(problem).step(problem.optimum.x)
    assert outcome.observed == outcome.value == pytest.approx(problem.optimum.value)
    assert not outcome.corrupted


@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, 12),
    st.lists(st.floats(0, 1), max_size=120),
    st.lists(st.integers(1, 100), max_size=12),
)
@settings(max_examples=400, deadline=None)
def test_no_attack_exceeds_its_count(seed, count, xs, releases):
    budget = Frequency(count, tuple(sorted(releases)))
    environment = Environment(forrester(), Gaussian(1.0), Adversary(Everything(), budget), seed)
    lied = 0
    for t, outcome in enumerate(steps(environment, xs), start=1):
        lied += outcome.corrupted
        released = sum(r <= t for r in releases) if releases else count
        assert lied <= min(count, released)
    assert environment.spent.count == lied
    if xs and not releases:
        assert lied == min(count, len(xs))  # greedy: as early as it may


@given(st.sampled_from(sorted(SETTINGS)), st.integers(1, 130), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_published_adversaries_keep_to_the_cube_root(name, rounds, seed):
    problem = forrester()
    adversary = SETTINGS[name].against(problem.optimum, rounds)
    environment = Environment(problem, Gaussian(1.0), adversary, seed)
    xs = np.random.default_rng(seed).random(rounds)
    assert sum(o.corrupted for o in steps(environment, xs)) <= cube_root(rounds)


def test_corrupted_says_whether_the_told_value_changed():
    problem = forrester()
    truth = problem.value(np.array([[0.5]]))[0]
    lies = Replace({1: math.nan, 2: truth, 3: math.inf})
    environment = Environment(problem, adversary=Adversary(lies, Unlimited()))
    outcomes = steps(environment, [0.5] * 4)
    assert [o.corrupted for o in outcomes] == [True, False, True, False]
    assert math.isnan(outcomes[0].observed)
    assert all(o.value == truth for o in outcomes)
    assert environment.spent.count == 2
    assert environment.spent.magnitude == math.inf


def test_noise_of_a_round_does_not_depend_on_what_was_asked():
    def draws(xs, adversary=None):
        environment = Environment(forrester(), Gaussian(1.0), adversary, seed=7)
        return [o.observed - o.value for o in steps(environment, xs) if not o.corrupted]

    same_x = draws([0.5] * 2000)
    other_x = draws(np.linspace(0, 1, 2000))
    np.testing.assert_allclose(other_x, same_x, atol=1e-12)
    lying = Adversary(Everything(), Frequency(3))
    np.testing.assert_allclose(draws([0.5] * 2000, lying), same_x[3:], atol=1e-12)


def test_noise_does_not_depend_on_the_initial_design():
    def observed(initial):
        environment = Environment(forrester(), Gaussian(1.0), seed=7)
        environment.initial(initial)
        return [o.observed for o in steps(environment, [0.3] * 50)]

    assert observed(0) == observed(5) == observed(np.array([[0.1], [0.9]]))


def test_streams_differ_between_seeds_and_from_one_another():
    first = Environment(forrester(), Gaussian(1.0), seed=1)
    second = Environment(forrester(), Gaussian(1.0), seed=2)
    a = [o.observed for o in steps(first, [0.5] * 20)]
    b = [o.observed for o in steps(second, [0.5] * 20)]
    design = [o.observed for o in first.initial(np.full((20, 1), 0.5))]
    assert not set(a) & set(b)
    assert not set(a) & set(design)


def test_a_seed_reproduces_everything():
    def story():
        lies = Adversary(Everything(), Frequency(5))
        environment = Environment(forrester(), Gaussian(1.0), lies, seed=3)
        initial = environment.initial(5)
        played = steps(environment, np.linspace(0, 1, 30))
        return repr([(o.x.tolist(), o.observed, o.corrupted) for o in [*initial, *played]])

    assert story() == story()


def test_initial_points_are_clean_and_are_not_rounds():
    lies = Adversary(Everything(), Unlimited())
    environment = Environment(forrester(), Gaussian(1.0), lies, seed=0)
    outcomes = environment.initial(5)
    assert environment.round == 0
    assert not any(o.corrupted for o in outcomes)
    # five points of a scrambled Sobol sequence: the first four fall in different quarters
    assert sorted(int(4 * o.x[0]) for o in outcomes[:4]) == [0, 1, 2, 3]
    assert environment.step(np.array([0.5])).corrupted


def test_finite_domain_gives_the_same_world_as_its_formula():
    grid = forrester().on_grid(21)
    on_grid = Environment(grid, Gaussian(1.0), seed=4)
    on_box = Environment(forrester(), Gaussian(1.0), seed=4)
    for x in grid.domain.points[::-1]:
        a, b = on_grid.step(x), on_box.step(x)
        assert (a.value, a.observed) == pytest.approx((b.value, b.observed), rel=1e-12)
        np.testing.assert_array_equal(a.x, x)


class ToZero(Perturbation):
    """Takes every input to 0."""

    def move(self, seen):
        return 0.0 * seen.x


@pytest.mark.parametrize("problem", [forrester(), forrester().on_grid(5)])
def test_the_moved_point_is_executed_and_its_value_is_observed(problem):
    seen = []

    class Listening(Attack):
        def rewrite(self, seen_round):
            seen.append((seen_round.x.tolist(), seen_round.value))
            return seen_round.observed

    world = Environment(problem, adversary=Adversary(Listening()), perturbation=ToZero())
    x = np.array([0.75])
    outcome = world.step(x)
    assert outcome.x.tolist() == [0.0]
    assert outcome.value == outcome.observed == problem.value(np.zeros((1, 1)))[0]
    assert not outcome.corrupted
    assert seen == [([0.0], outcome.value)]  # an attack on rewards sees what was executed
    assert x.tolist() == [0.75]


def test_a_point_outside_is_refused_before_it_is_moved_and_after():
    class Away(Perturbation):
        def move(self, seen):
            return seen.x + 5.0

    for problem in (forrester(), forrester().on_grid(5)):
        with pytest.raises(ValueError, match=r"."):
            Environment(problem, perturbation=ToZero()).step(np.array([7.0]))
        world = Environment(problem, perturbation=Away())
        with pytest.raises(ValueError, match=r"."):
            world.step(np.array([0.25]))
        assert world.round == 0


def test_moves_change_neither_noise_nor_lies_nor_the_initial_design():
    def story(perturbation):
        adversary = Adversary(Replace({2: 8.0, 5: math.nan}), Unlimited())
        known = {"seed": 11, "perturbation": perturbation}
        world = Environment(forrester(), Gaussian(1.0), adversary, **known)
        design = [o.observed for o in world.initial(4)]
        rounds = [world.step(np.array([0.5])) for _ in range(8)]
        noise = [o.observed - o.value for o in rounds if not o.corrupted]
        return design, noise, [o.corrupted for o in rounds]

    still, moved = story(None), story(RandomMove(0.3))
    assert still[0] == moved[0]
    np.testing.assert_allclose(still[1], moved[1], atol=1e-12)
    assert still[2] == moved[2]


def test_who_looks_at_a_band_says_so():
    class Peeking(Perturbation):
        def move(self, seen):
            seen.band()
            return seen.x

    with pytest.raises(ValueError, match="needs_band = True"):
        Environment(forrester(), perturbation=Peeking()).step(np.array([0.5]))


def test_what_a_perturbation_is_shown_of_f_cannot_be_altered():
    class Vandal(Perturbation):
        needs_finite = True

        def move(self, seen):
            seen.values()[:] = 1e9
            return seen.x

    problem = forrester().on_grid(5)
    world = Environment(problem, perturbation=Vandal())
    values = [world.step(x).value for x in problem.domain.points]
    assert values == problem.value(problem.domain.points).tolist()


def test_rows_may_be_written_as_integers_or_with_a_negative_zero():
    environment = Environment(forrester().on_grid(3))
    assert environment.step(np.array([1])).value == environment.step(np.array([1.0])).value
    assert environment.step(np.array([-0.0])).value == environment.step(np.array([0.0])).value


def test_outcome_does_not_share_the_callers_array():
    environment = Environment(forrester())
    x = np.array([0.25])
    outcome = environment.step(x)
    x[0] = 0.75
    assert outcome.x[0] == 0.25


@pytest.mark.parametrize("problem", [forrester(), forrester().on_grid(5)])
@pytest.mark.parametrize(
    "x", [np.array([math.nan]), np.array([7.0]), np.array([0.25, 0.5]), np.array([[0.25], [0.5]])]
)
def test_a_point_that_cannot_be_played_costs_no_round(problem, x):
    environment = Environment(problem, Gaussian(1.0))
    with pytest.raises(ValueError, match=r"."):
        environment.step(x)
    assert environment.round == 0
    same_draw = Environment(problem, Gaussian(1.0)).step(np.array([0.25])).observed
    assert environment.step(np.array([0.25])).observed == same_draw
