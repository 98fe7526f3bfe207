"""The oven example: inputs that move, and a certificate that is true."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from scripts import load, stoic

EXAMPLE = Path(__file__).parents[2] / "examples" / "oven"


@pytest.fixture(scope="module")
def oven() -> ModuleType:
    return load(EXAMPLE / "oven.py")


@pytest.mark.slow  # tests/test_cli.py has a smaller oven
def test_what_is_certified_is_so(tmp_path, oven):
    study = str(EXAMPLE / "study.toml")
    printed = stoic("tune", study, "--timeout", "3600", where=tmp_path)  # on a loaded machine, too
    assert "study oven (minimize): 40 trials: 40 complete" in printed
    assert "executed       40 of 40 trials say what was run" in printed
    record = json.loads(
        stoic("certify", study, "--plot", "moves.png", "--json", where=tmp_path)
    )["recommended"]  # fmt: skip
    heat, speed = record["params"]["heat"], record["params"]["speed"]
    assert abs(heat - 70.0) < 3.0
    within = record["certificate"]["within"]["heat"]
    assert within > 2.0
    moves = np.linspace(-within, within, 101)
    assert max(oven.loss(heat + move, speed) for move in moves) <= 0.4
    curve = record["curve"]
    for size, worst in zip(curve["tolerances"], curve["pessimistic"], strict=True):
        moved = [oven.loss(heat + 2.0 * size * side, speed) for side in (-1.0, 1.0)]
        assert max(moved) <= worst + 0.02
    assert (tmp_path / "moves.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
