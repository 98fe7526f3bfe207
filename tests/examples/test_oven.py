"""The oven example: inputs that move, and a certificate that is true."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "oven"


@pytest.fixture(scope="module")
def oven() -> ModuleType:
    specification = importlib.util.spec_from_file_location("oven", EXAMPLE / "oven.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def stoic(*arguments: str, where: Path) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "OPTUNA_STORAGE"}
    command = [sys.executable, "-m", "stoic", *arguments]
    return subprocess.run(
        command, cwd=where, env=environment, check=True, capture_output=True, text=True
    ).stdout


def test_what_is_certified_is_so(tmp_path, oven):
    study = str(EXAMPLE / "study.toml")
    printed = stoic("tune", study, where=tmp_path)
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
