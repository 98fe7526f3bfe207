"""Robot hand that pushes an object over a table, simulated by Box2D.

The task is the three-dimensional pushing of [Wang2017]_, as [Bogunovic2022]_, section 4, uses it.
Lengths are in metres, times in seconds, forces in newtons, torques in newton metres.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from stoic.data import Array
from stoic.domains import Finite
from stoic.problems.base import check_rows, outside
from stoic.problems.tabulated import Tabulated

GOAL = (3.0, 2.0)
LOWER, UPPER = (-5.0, -5.0, 1.0), (5.0, 5.0, 30.0)

_STEP = 1.0 / 100.0
_ITERATIONS = (10, 10)  # of the velocities and of the positions, in every step
_STEPS_PER_UNIT = 10  # of the duration t
_FREE_STEPS = 100
_SPEED = 5.0
_GAIN = 30.0  # per second: how fast the hand is pulled to its wanted velocity

_OBJECT_RADIUS, _OBJECT_DENSITY, _OBJECT_FRICTION = 1.0, 0.05, 0.01
_OBJECT_DRAG = {"maxForce": 5.0, "maxTorque": 2.0}
_HAND_HALF_SIZES, _HAND_DENSITY, _HAND_FRICTION = (0.3, 1.0), 0.1, 0.1
_HAND_DRAG = {"maxForce": 2.0, "maxTorque": 2.0}


def push(x: float, y: float, t: float) -> tuple[float, float]:
    """Return where the object, a disc at the origin, ends after a push from (x, y) of duration t.

    The hand is a bar that starts at (x, y), turned by arctan(y / x), and is driven at constant
    velocity towards the origin, in the direction it starts with, for int(10 t) steps of 0.01 s;
    then both slide freely for 100 more. A hand that starts within the disc is pushed out of it, by
    moving both. Nothing is random: the same push ends at the same place.
    """
    distance = math.hypot(x, y)
    if not (math.isfinite(distance) and distance > 0.0 and math.isfinite(t) and t >= 0.0):
        raise ValueError(
            f"A push starts away from the origin and lasts t >= 0, got x={x}, y={y}, t={t}."
        )
    b2 = _box2d()
    world = b2.b2World(gravity=(0.0, 0.0))
    table = world.CreateStaticBody()
    disc = world.CreateDynamicBody(position=(0.0, 0.0))
    disc.CreateFixture(
        shape=b2.b2CircleShape(radius=_OBJECT_RADIUS),
        density=_OBJECT_DENSITY,
        friction=_OBJECT_FRICTION,
    )
    # atan, not atan2: a bar is the same after half a turn
    hand = world.CreateDynamicBody(
        position=(x, y), angle=math.atan(y / x) if x else math.copysign(math.pi / 2, y)
    )
    hand.CreateFixture(
        shape=b2.b2PolygonShape(box=_HAND_HALF_SIZES),
        density=_HAND_DENSITY,
        friction=_HAND_FRICTION,
    )
    # Friction with the table, which a world seen from above has no other word for.
    world.CreateFrictionJoint(bodyA=table, bodyB=disc, **_OBJECT_DRAG)
    world.CreateFrictionJoint(bodyA=table, bodyB=hand, **_HAND_DRAG)
    wanted = b2.b2Vec2(-_SPEED * x / distance, -_SPEED * y / distance)
    driven = int(_STEPS_PER_UNIT * t)
    for step in range(driven + _FREE_STEPS):
        if step < driven:
            hand.ApplyTorque(-_GAIN * hand.mass * hand.angularVelocity, wake=True)
            force = _GAIN * hand.mass * (wanted - hand.linearVelocity)
            hand.ApplyForce(force, hand.worldCenter, wake=True)
        world.Step(_STEP, *_ITERATIONS)
    return float(disc.position.x), float(disc.position.y)


def pushing(x: Array) -> Array:
    """5 - ||push(r_x, r_y, t_r) - goal|| at each row (r_x, r_y, t_r), shape (m,)."""
    rows = check_rows(x, 3, "robot3d")
    return np.array([5.0 - math.dist(push(*row), GOAL) for row in rows.tolist()])


@cache
def robot3d(seed: int) -> Tabulated:
    """Robot pushing from 100 uniform points of [-5, 5]^2 x [1, 30], [Bogunovic2022]_, section 4.

    f(r_x, r_y, t_r) = 5 - ||push(r_x, r_y, t_r) - (3, 2)||, largest where the object ends at the
    goal; 5 - 13^(1/2) where it is never touched. Every point is simulated once, and a seed once in
    a process.
    """
    points = np.random.default_rng(seed).uniform(LOWER, UPPER, (100, 3))
    return Tabulated("robot3d", Finite(points), pushing(points))


@cache
def _box2d() -> Any:
    return outside("Box2D", "Robot pushing needs Box2D")
