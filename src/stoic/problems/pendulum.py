"""Pole on a cart, balanced by an LQR controller whose weights are tuned: four parameters.

The state is s = (cart position m, pole angle rad, cart velocity m/s, angular velocity rad/s); u is
the force on the cart in newtons. The motion is that of gymnasium's CartPole [Towers2024]_, with any
force up to 10 N in place of its two. All parameters are simulated together.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_discrete_are

from stoic.data import Array
from stoic.domains import Box
from stoic.domains.base import as_points
from stoic.problems.tabulated import Tabulated

GRAVITY, CART, POLE = 9.8, 1.0, 0.1  # m/s^2, kg, kg
HALF_LENGTH = 0.5  # m, of the pole
STEP, FORCE = 0.02, 10.0  # s, N
TOTAL = CART + POLE

STEPS = 2000
START = (0.0, 0.05, 0.0, 0.0)  # the pole leans by 3 degrees
PRICE = 0.1  # of the squared force in the cost
BOX = Box(np.array([-3.0, -3.0, -3.0, 1.0]), np.array([2.0, 2.0, 2.0, 5.0]))


def following(s: Array, u: Array) -> Array:
    """Advance the states ``s`` (4, m) by a step under the forces ``u`` (m,)."""
    _, angle, _, spin = s
    sine, cosine = np.sin(angle), np.cos(angle)
    push = (u + POLE * HALF_LENGTH * spin**2 * sine) / TOTAL
    inertia = HALF_LENGTH * (4.0 / 3.0 - POLE * cosine**2 / TOTAL)
    turn = (GRAVITY * sine - cosine * push) / inertia  # rad/s^2
    cart = push - POLE * HALF_LENGTH * turn * cosine / TOTAL  # m/s^2
    moved = s.copy()
    moved[:2] += STEP * s[2:]  # explicit Euler: by the old velocities
    moved[2] += STEP * cart
    moved[3] += STEP * turn
    return moved


def linearised() -> tuple[Array, Array]:
    """Linearise a step near the upright pole at rest: s' = A s + B u, A (4, 4), B (4, 1)."""
    # As in ``following`` to first order: cos = 1, sin = angle, spin^2 = 0
    inertia = HALF_LENGTH * (4.0 / 3.0 - POLE / TOTAL)
    lever = POLE * HALF_LENGTH / TOTAL
    falls, pushed = GRAVITY / inertia, -1.0 / (TOTAL * inertia)  # rad/s^2 per rad and per newton
    rates = np.zeros((4, 4))
    rates[:2, 2:] = np.eye(2)
    rates[2:, 1] = -lever * falls, falls
    forces = np.array([[0.0], [0.0], [1.0 / TOTAL - lever * pushed], [pushed]])
    return np.eye(4) + STEP * rates, STEP * forces


def gains(x: Array) -> Array:
    """F, shape (m, 4), of the controllers u = F s with parameters ``x`` (m, 4).

    F = dlqr(A, B, W_s, W_u) with W_s = diag(10^x1, 10^x2, 10^x3, 0.1) and W_u = 10^-x4
    [Marco2016]_, [Saday2025]_, the weights in the order in which the latter names the states.
    """
    A, B = linearised()
    found = np.empty((len(x), 4))
    for row, (first, second, third, fourth) in enumerate(np.asarray(x, dtype=float)):
        states = np.diag([10.0**first, 10.0**second, 10.0**third, 0.1])
        force = np.array([[10.0**-fourth]])
        P = solve_discrete_are(A, B, states, force)
        found[row] = -np.linalg.solve(force + B.T @ P @ B, B.T @ P @ A)[0]
    return found


def costs(x: Array, start: tuple[float, ...] = START, steps: int = STEPS) -> Array:
    """Mean of |s|^2 + 0.1 u^2 over the ``steps``, shape (m,), from the state ``start`` (4,).

    Forces are cut off at 10 N. No step ends the simulation, so a pole that falls is paid for as
    long as it swings.
    """
    points = as_points(x, 4)
    if len(start) != 4 or steps < 1:
        raise ValueError(
            f"A simulation starts from four numbers and has at least one step, got {start!r} and "
            f"{steps!r}."
        )
    F = gains(points).T
    s = np.repeat(np.asarray(start, dtype=float)[:, None], len(points), axis=1)  # (4, m)
    total = np.zeros(len(points))
    for _ in range(steps):
        u = np.clip(np.einsum("ij,ij->j", F, s), -FORCE, FORCE)
        total += np.einsum("ij,ij->j", s, s) + PRICE * u**2
        s = following(s, u)
    return total / steps


def pendulum(side: int = 8) -> Tabulated:
    """Tabulate the performance of ``side``^4 controllers on a grid: 4,096 in [Saday2025]_.

    f is minus the cost, standardised over the grid and clipped to [-2, 2]. Cost, start and the
    length of the simulation are not in the paper. It says 2,000 seconds; here it is 2,000 steps, 40
    seconds, after which the cart of the slowest controller is 7 cm from rest. All of them keep the
    pole up, and f is below 0 at three controllers of ten (the paper: about 25 per cent).
    """
    if side < 2:
        raise ValueError(f"A grid has at least two points a side, got {side!r}.")
    grid = BOX.grid(side)
    cost = costs(grid.points)
    return Tabulated("pendulum", grid, np.clip((cost.mean() - cost) / cost.std(), -2.0, 2.0))
