import numpy as np
import pytest

from stoic.adversaries import (
    Adversary,
    Clipping,
    Flip,
    Later,
    Ledger,
    Magnitude,
    Round,
    Subtraction,
    TopK,
)
from stoic.environment import Environment
from stoic.problems import forrester

VALUES = np.array([0.5, 3.0, -2.0, 3.0, 1.0])
EVERYTHING = np.ones(5, dtype=bool)


def corruption(attack, arm, active=EVERYTHING, spent=(0, 0.0)):
    """By how much the attack wants to change what is observed at an arm."""
    x, value, rng = np.array([float(arm)]), VALUES[arm], np.random.default_rng(0)
    seen = Round(x, arm, value, value + 0.25, 1, rng, Ledger(*spent), lambda: active)
    return attack.rewrite(seen) - seen.observed


def left(x):
    return x[0] <= 2.0


def test_clipping_makes_the_region_look_best_by_the_margin():
    attack = Clipping(left, best=3.0, margin=0.5)
    assert [corruption(attack, arm) for arm in range(5)] == [0, 0, 0, -0.5, 0]
    assert corruption(Clipping(left, best=1.2, margin=0.5), 4) == pytest.approx(-0.3)


def test_subtraction_is_the_same_everywhere_outside():
    attack = Subtraction(left, 4.0)
    assert [corruption(attack, arm) for arm in range(5)] == [0, 0, 0, -4, -4]


def test_flip_tells_the_negative():
    assert [corruption(Flip(), arm) for arm in range(5)] == (-2 * VALUES).tolist()


def test_top_k_strikes_the_best_of_those_that_remain():
    assert [corruption(TopK(VALUES, 2), arm) for arm in range(5)] == [0, -4, 0, -4, 0]
    # a tie at the border goes to the lower row
    assert [corruption(TopK(VALUES, 1), arm) for arm in range(5)] == [0, -4, 0, 0, 0]
    without = np.array([True, False, True, True, True])
    assert [corruption(TopK(VALUES, 2), arm, without) for arm in range(5)] == [0, 0, 0, -4, -2]
    # what is lower anyway is not praised
    assert corruption(TopK(VALUES, 5), 2) == 0
    with pytest.raises(ValueError, match="K >= 1"):
        TopK(VALUES, 0)


def test_later_waits_for_the_first_arm_that_is_ruled_out():
    attack = Later(Flip())
    without = np.array([True, True, False, True, True])
    assert corruption(attack, 1) == 0
    assert corruption(attack, 1, without) == -6
    assert corruption(attack, 1, spent=(1, 2.0)) == -6  # it has struck: it goes on


def test_the_environment_tells_attacks_what_the_learner_ruled_out_and_binds_the_budget():
    problem = forrester().on_grid(11)
    values = problem.value(problem.domain.points)
    best = problem.domain.points[values.argmax()]
    world = Environment(problem, adversary=Adversary(Later(TopK(values, 1)), Magnitude(20.0)))
    active = np.ones(11, dtype=bool)
    assert not world.step(best, lambda: active).corrupted
    active[0] = False
    told = [world.step(best, lambda: active).observed for _ in range(3)]
    assert told[0] == pytest.approx(-1.0)
    assert told[1] == pytest.approx(values.max() - (20.0 - (values.max() + 1.0)))
    assert told[2] == values.max()
    assert world.spent.magnitude == pytest.approx(20.0, abs=1e-12)


@pytest.mark.parametrize("attack", [TopK(VALUES, 1), Later(Flip())])
def test_attacks_that_compare_arms_refuse_a_box(attack):
    with pytest.raises(ValueError, match="needs a finite domain"):
        Environment(forrester(), adversary=Adversary(attack))
