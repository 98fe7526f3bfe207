import numpy as np
import pytest

from stoic.problems import pendulum
from stoic.problems.pendulum import (
    BOX,
    FORCE,
    PRICE,
    START,
    costs,
    following,
    gains,
    linearised,
)
from stoic.satisficing import highest_worst, most_robust

SOME = BOX.sample(6, np.random.default_rng(1))


def test_a_step_is_gymnasiums():
    gymnasium = pytest.importorskip("gymnasium")
    cart = gymnasium.make("CartPole-v1").unwrapped
    ours = np.array([0.3, -0.15, -0.4, 0.7])
    # Gymnasium has the velocity of the cart before the angle.
    cart.state, cart.steps_beyond_terminated = ours[[0, 2, 1, 3]], None
    for force in np.random.default_rng(2).uniform(-FORCE, FORCE, 40):
        cart.force_mag = force
        cart.step(1)
        cart.steps_beyond_terminated = None
        ours = following(ours[:, None], np.array([force]))[:, 0]
        np.testing.assert_allclose(ours, np.array(cart.state)[[0, 2, 1, 3]], rtol=1e-12, atol=1e-14)
    assert np.abs(ours).max() > 0.5


def test_the_linear_system_is_the_slope_of_a_step_at_rest():
    A, B = linearised()
    h = 1e-6
    for k, e in enumerate(np.eye(4)):
        up, down = (following(sign * h * e[:, None], np.zeros(1))[:, 0] for sign in (1.0, -1.0))
        np.testing.assert_allclose((up - down) / (2.0 * h), A[:, k], atol=1e-9)
    up, down = (following(np.zeros((4, 1)), np.array([sign * h]))[:, 0] for sign in (1.0, -1.0))
    np.testing.assert_allclose((up - down) / (2.0 * h), B[:, 0], atol=1e-9)
    assert np.abs(np.linalg.eigvals(A)).max() > 1.05  # it falls by itself


@pytest.mark.long
def test_gains_are_the_best_there_are():
    """The Riccati recursion, iterated; and no other gain costs less on the linear system."""
    A, B = linearised()
    for x, F in zip(SOME, gains(SOME), strict=True):
        Q, R = np.diag([*(10.0 ** x[:3]), 0.1]), 10.0 ** -x[3]
        P = Q
        for _ in range(20_000):
            gain = (B.T @ P @ A) / (R + B.T @ P @ B)
            P = Q + A.T @ P @ (A - B @ gain)
        np.testing.assert_allclose(F, -gain[0], rtol=1e-5)
        assert np.abs(np.linalg.eigvals(A + B @ F[None])).max() < 1.0


def test_costs_are_those_of_a_simulation_one_by_one():
    start = (0.1, 0.3, -0.2, 0.4)
    expected = []
    for F in gains(SOME):
        s, total = np.array(start), 0.0
        for _ in range(30):
            u = min(max(float(F @ s), -FORCE), FORCE)
            total += float(s @ s) + PRICE * u * u
            s = following(s[:, None], np.array([u]))[:, 0]
        expected.append(total / 30)
    np.testing.assert_allclose(costs(SOME, start, 30), expected, rtol=1e-10)
    assert np.abs(gains(SOME) @ np.array(start)).max() > FORCE  # some are cut off
    np.testing.assert_allclose(costs(SOME[::-1], start, 30), expected[::-1], rtol=1e-10)


@pytest.mark.slow
def test_the_problem_of_the_paper():
    problem = pendulum()
    f, points = problem.values, problem.domain.points
    assert points.shape == (4096, 4)
    assert f.min() == -2.0
    assert 0.5 < f.max() < 2.0
    cost = costs(points)
    whole = (cost.mean() - cost) / cost.std()
    np.testing.assert_array_equal(f, np.clip(whole, -2.0, 2.0))
    assert whole.mean() == pytest.approx(0.0, abs=1e-12)
    assert whole.std() == pytest.approx(1.0)
    assert np.mean(f < 0.0) == pytest.approx(0.30, abs=0.01)  # the paper: about 25 per cent
    # tau = 0 is in reach of moves by 2, and by 2.5.
    assert most_robust(f, 0.0, points).value == pytest.approx(3.4286, abs=1e-4)
    assert highest_worst(f, 2.5, points).value > 0.3


def test_no_controller_drops_the_pole():
    s = np.repeat(np.array(START)[:, None], 256, axis=1)
    F = gains(BOX.grid(4).points).T
    for _ in range(2000):
        u = np.clip((F * s).sum(axis=0), -FORCE, FORCE)
        s = following(s, u)
        assert np.abs(s[1]).max() < 0.1
    assert 0.06 < np.abs(s).max() < 0.08  # the slowest cart, in metres


def test_what_is_refused():
    with pytest.raises(ValueError, match="four numbers"):
        costs(SOME, (0.0, 0.1), 5)
    with pytest.raises(ValueError, match="at least one step"):
        costs(SOME, START, 0)
    with pytest.raises(ValueError, match="two points a side, got 1"):
        pendulum(1)
