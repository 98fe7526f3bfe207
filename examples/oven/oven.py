"""Bake once in an oven that does not keep its temperature, and print the loss as JSON.

The best is 30 degrees, in a valley so narrow that half a tolerance ruins it; at 70 degrees the loss
is higher, and stays good for four degrees either way. The oven is up to two degrees off, other than
asked and other each time; its sensor says what it was, and that is what is told.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random

OFF = 2.0  # degrees, at most
NOISE = 0.01  # standard deviation of what is measured


def loss(heat: float, speed: int) -> float:
    """The truth at what was run."""
    narrow = 0.95 * math.exp(-(((heat - 30.0) / 1.5) ** 2))
    wide = 0.8 * math.exp(-(((heat - 70.0) / 8.0) ** 2))
    return 1.0 - narrow - wide + 0.01 * (speed - 5) ** 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heat", type=float, required=True)
    parser.add_argument("--speed", type=int, required=True)
    asked = parser.parse_args()
    # Repeatable, yet nothing that a model of the parameters could learn.
    chance = random.Random(os.environ.get("STOIC_TRIAL", ""))
    run = min(max(asked.heat + chance.uniform(-OFF, OFF), 0.0), 100.0)
    measured = loss(run, asked.speed) + chance.gauss(0.0, NOISE)
    print(json.dumps({"loss": measured, "executed": {"heat": run}, "standard_error": NOISE}))


if __name__ == "__main__":
    main()
