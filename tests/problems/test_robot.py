import math
import sys

import numpy as np
import pytest
from scipy.linalg import cho_factor, cho_solve

from stoic.kernels import RBF
from stoic.problems import Problem, robot
from stoic.problems.robot import LOWER, UPPER, push, pushing, robot3d

UNTOUCHED = 5.0 - math.sqrt(13.0)
# Masses of the hand and of the disc, and what the hand is driven with: 30 m (5 - v).
HAND, DISC = 0.1 * 0.6 * 2.0, 0.05 * math.pi


@pytest.mark.usefixtures("box2d")
class TestPhysics:
    @pytest.mark.parametrize("start", [(5.0, 5.0, 1.0), (-4.0, 0.0, 3.0), (0.0, 4.0, 2.0)])
    def test_a_push_that_never_arrives_leaves_the_object(self, start):
        # At 5 m/s, 10 t steps of 0.01 s, a slide of less than 1 m, and 1.3 m in all to touch.
        assert push(*start) == (0.0, 0.0)
        assert pushing(np.array([start]))[0] == pytest.approx(UNTOUCHED, rel=1e-15)

    def test_a_second_of_steady_pushing(self):
        # 30 m (5 - v) = 2 + 5 newtons of friction.
        speed = 5.0 - 7.0 / (30.0 * HAND)
        travelled = push(-4.0, 0.0, 50.0)[0] - push(-4.0, 0.0, 40.0)[0]
        assert travelled == pytest.approx(speed, rel=0.01)

    @pytest.mark.parametrize("t", [8.0, 12.0, 30.0])
    def test_a_straight_push_is_motion_in_one_dimension(self, t):
        # Friction 2 on the hand and 5 on the disc; they meet after 2.7 m and do not bounce.
        hand = disc = speed = 0.0
        for step in range(int(10 * t) + 100):
            touching = hand >= 2.7
            if touching and disc == 0.0:
                speed *= HAND / (HAND + DISC)
            mass, friction = (HAND + DISC, 7.0) if touching else (HAND, 2.0)
            force = 30.0 * HAND * (5.0 - speed) if step < int(10 * t) else 0.0
            speed = max(speed + 0.01 * (force - friction) / mass, 0.0)
            hand += 0.01 * speed
            disc += 0.01 * speed * touching
        assert disc > 0.3
        assert push(-4.0, 0.0, t)[0] == pytest.approx(disc, abs=0.05)

    def test_a_straight_push_stays_on_its_line(self):
        for angle in np.linspace(0.1, 2.0 * np.pi, 9):
            x, y = push(3.0 * np.cos(angle), 3.0 * np.sin(angle), 15.0)
            assert math.hypot(x, y) > 1.0
            assert x * np.sin(angle) - y * np.cos(angle) == pytest.approx(0.0, abs=1e-3)
            assert x * np.cos(angle) + y * np.sin(angle) < 0.0

    def test_mirrored_and_opposite_pushes(self):
        for start in [(-3.0, 1.0), (-2.0, -4.0), (0.0, 3.0)]:
            x, y = push(*start, 14.0)
            assert math.hypot(x, y) > 0.1
            assert push(start[0], -start[1], 14.0) == pytest.approx((x, -y), abs=1e-3)
            assert push(-start[0], -start[1], 14.0) == pytest.approx((-x, -y), abs=1e-3)

    def test_longer_pushes_go_farther(self):
        ends = [push(-3.0, 0.0, t)[0] for t in range(1, 31, 3)]
        assert ends == sorted(ends)
        assert ends[0] == 0.0
        assert ends[-1] > 5.0

    def test_a_duration_counts_in_whole_steps(self):
        assert push(-2.0, 1.0, 12.0) == push(-2.0, 1.0, 12.09)
        assert push(-2.0, 1.0, 12.0) != push(-2.0, 1.0, 12.1)

    def test_the_goal_is_worth_five(self):
        # From the far side, on the line through the goal: the best duration nearly ends there.
        starts = [(-1.5, -1.0, t) for t in np.arange(1.0, 30.0, 0.1)]
        assert 4.9 < pushing(np.array(starts)).max() <= 5.0

    def test_wrong_starts_are_refused(self):
        with pytest.raises(ValueError, match="starts away from the origin"):
            push(0.0, 0.0, 3.0)
        with pytest.raises(ValueError, match="lasts t >= 0"):
            push(1.0, 0.0, -1.0)
        with pytest.raises(ValueError, match="t=nan"):
            push(1.0, 0.0, math.nan)
        with pytest.raises(ValueError, match=r"shape \(m, 3\), got \(2, 2\)"):
            pushing(np.ones((2, 2)))


def likeliest_lengthscale(points, values):
    """Of a noiseless squared exponential process with mean 0 and free variance."""
    scales, n = np.arange(0.5, 6.0, 0.1), len(values)

    def cost(lengthscale):
        L = cho_factor(RBF(lengthscale)(points, points) + 1e-6 * np.eye(n))
        fit = values @ cho_solve(L, values) / n
        return n * np.log(fit) + 2.0 * np.log(np.diagonal(L[0])).sum()

    return scales[np.argmin([cost(scale) for scale in scales])]


@pytest.mark.usefixtures("box2d")
class TestSetting:
    def test_it_is_the_setting_of_the_paper(self):
        problem = robot3d(0)
        assert isinstance(problem, Problem)
        points, values = problem.domain.points, problem.values
        assert points.shape == (100, 3)
        assert (points >= LOWER).all()
        assert (points <= UPPER).all()
        assert np.ptp(points[:, 2]) > 25.0
        assert problem.optimum.value == values.max()
        np.testing.assert_array_equal(pushing(points[:5]), values[:5])
        assert robot3d(0) is problem
        assert robot3d(1).domain.points.tolist() != points.tolist()

    def test_values_are_like_those_reported(self):
        values = np.concatenate([robot3d(seed).values for seed in range(5)])
        moved = np.mean(np.abs(values - UNTOUCHED) > 1e-9)
        assert 0.8 < moved < 0.9
        assert -8.0 < values.min() < -5.5
        assert 4.0 < values.max() <= 5.0

    def test_the_likeliest_lengthscale_is_about_two(self):
        # 1.94 in the paper, for its own 100 points.
        found = [
            likeliest_lengthscale(robot3d(seed).domain.points, robot3d(seed).values)
            for seed in range(3)
        ]
        assert 1.5 < np.median(found) < 3.0


def test_what_is_missing_is_named(monkeypatch):
    robot._box2d.cache_clear()
    monkeypatch.setitem(sys.modules, "Box2D", None)
    with pytest.raises(ImportError, match=r"pip install 'stoic\[problems\]'"):
        push(1.0, 1.0, 1.0)
    robot._box2d.cache_clear()
