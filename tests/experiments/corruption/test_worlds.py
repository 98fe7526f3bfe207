import sys

import numpy as np
import pytest

from stoic.adversaries import Adversary, Gaussian, Magnitude
from stoic.environment import Environment
from stoic.experiments.corruption import growth
from stoic.experiments.corruption.trials import Settings
from stoic.experiments.corruption.worlds import ATTACKS, F1, NO_ATTACK, ROBOT3D, WORLDS, draw
from stoic.experiments.reproduction import reproduce
from stoic.problems import f1, robot


def presupposed(problem, inside, depth):
    """The two sentences of section 4, point by point."""
    points, values = problem.domain.points, problem.value(problem.domain.points)
    best = points[np.argmax(values)]
    region = [v for x, v in zip(points, values, strict=True) if inside(x)]
    return not inside(best) and depth > max(values) - max(region)


def test_the_draws_of_f1_are_the_first_that_meet_what_is_presupposed():
    seeds = [draw("f1", k).seed for k in range(10)]
    assert seeds == [4, 6, 10, 11, 14, 15, 16, 17, 19, 20]  # as the settings say
    met = [seed for seed in range(21) if presupposed(f1(seed), lambda x: x[0] <= x[1], 1.0)]
    assert seeds == met


@pytest.mark.usefixtures("box2d")
def test_the_draws_of_the_robot_are_the_first_that_meet_what_is_presupposed():
    seeds = [draw("Robot3D", k).seed for k in range(3)]
    assert seeds == [0, 3, 4]
    met = [s for s in range(5) if presupposed(robot.robot3d(s), lambda x: x[0] >= 0, 3.0)]
    assert seeds == met


@pytest.mark.usefixtures("box2d")
@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS.values(), ids=lambda world: world.name)
def test_the_one_draw_is_the_first_that_is_as_presupposed(world):
    firsts = iter(draw(world.name, k).seed for k in range(20))
    for seed in iter(firsts.__next__, world.draw):
        assert not growth.settled_unattacked(Settings(world.name, 50.0, seed))
    for budget in (50.0, 100.0):
        assert growth.settled_unattacked(Settings(world.name, budget, world.draw))


def told(attack, arm, active=None):
    """What an attack with a large budget tells without noise."""
    problem = draw("f1", 0).problem
    adversary = Adversary(F1.attack(attack, problem), Magnitude(1e6))
    environment = Environment(problem, Gaussian(0.0), adversary)
    return environment.step(problem.domain.points[arm], active).observed


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_tell_what_the_paper_says(attack):
    problem = draw("f1", 0).problem
    f, x = problem.values, problem.domain.points
    order = np.argsort(-f)
    inside = x[:, 0] <= x[:, 1]
    clipped = np.minimum(f, f[inside].max() - 0.5)
    expected = {
        NO_ATTACK: f,
        "Clipping": np.where(inside, f, clipped),
        "AggSub": np.where(inside, f, f - 1.0),
        "Top-3": np.where(np.isin(np.arange(100), order[:3]), -1.0, f),
        "Top-5": np.where(np.isin(np.arange(100), order[:5]), -1.0, f),
        "Flip": -f,
    }[attack]
    np.testing.assert_allclose([told(attack, arm) for arm in range(100)], expected, atol=1e-12)


def test_top_k_counts_what_is_left():
    f = draw("f1", 0).problem.values
    order = np.argsort(-f)
    left = np.ones(100, dtype=bool)
    left[order[:2]] = False
    assert told("Top-3", order[4], lambda: left) == pytest.approx(-1.0)
    assert told("Top-3", order[5], lambda: left) == f[order[5]]


def test_widths_are_those_of_the_paper():
    for world, beta_t, beta_h in ((F1, 0.5, 4.0), (ROBOT3D, 2.0, 6.0)):
        assert world.round_width(None, 1000) == pytest.approx(beta_t * np.log(1000.0) ** 0.5)
        assert world.epoch_width(None, 3) == beta_h
        assert WORLDS[world.name] is world


@pytest.mark.parametrize("figure", ["figure-1", "figure-3", "figure-6"])
def test_a_missing_simulator_is_refused_before_anything_runs(figure, tmp_path, monkeypatch):
    draw.cache_clear()
    robot.robot3d.cache_clear()
    robot._box2d.cache_clear()
    monkeypatch.setitem(sys.modules, "Box2D", None)
    with pytest.raises(ValueError, match=r"needs Box2D.*pip install 'stoic\[problems\]'"):
        reproduce(f"corruption/{figure}", trials=1, rounds=1, jobs=1, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    robot._box2d.cache_clear()
