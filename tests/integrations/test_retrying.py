"""Failures in plain Optuna scripts get a kind, and transient ones are really tried again."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import optuna
import pytest
from optuna.trial import TrialState

from stoic import Failed
from stoic.integrations.optuna import StoicSampler, explain, failure_kind
from stoic.integrations.retrying import ending_of, retrying


def failing(errors):
    """An objective that fails with these in turn, then succeeds, and keeps its parameters."""
    left, seen = [*errors], []

    def objective(trial):
        seen.append(trial.suggest_float("x", 0.0, 1.0))
        if left:
            error = left.pop(0)
            if isinstance(error, Exception):
                raise error
            return error
        return seen[-1]

    return objective, seen


def played(objective, n_trials=1, **arguments):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(retrying(objective, **arguments), n_trials=n_trials)
    return study.trials


def test_a_transient_failure_is_tried_again_with_the_same_parameters():
    objective, seen = failing([ConnectionResetError("lost"), BrokenProcessPool("died")])
    (trial,) = played(objective)
    assert trial.state == TrialState.COMPLETE
    assert trial.value == trial.params["x"]
    assert seen == [trial.params["x"]] * 3


def test_attempts_come_to_an_end():
    objective, seen = failing([ConnectionResetError("lost")] * 9)
    (trial,) = played(objective, attempts=2)
    assert len(seen) == 2
    assert trial.state == TrialState.FAIL
    assert failure_kind(trial) == "transient"
    assert trial.user_attrs["failure"] == "ConnectionResetError: lost"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (MemoryError(), "infeasible"),
        (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"), "infeasible"),
        (TimeoutError("too long"), None),
        (math.nan, None),
        (Failed("bad", "diverged"), "bad"),
    ],
    ids=["memory", "device", "timeout", "nan", "said"],
)
def test_other_failures_have_a_kind_and_are_not_tried_again(error, kind):
    objective, seen = failing([error])
    first, second = played(objective, n_trials=2)
    assert first.state == TrialState.FAIL
    assert failure_kind(first) == kind
    assert first.user_attrs["failure"]
    assert second.state == TrialState.COMPLETE  # the study went on
    assert len(seen) == 2


def test_what_an_ending_means_can_be_said():
    objective, seen = failing([math.nan, math.nan])
    (trial,) = played(objective, kinds={"nan": "transient"})
    assert trial.state == TrialState.COMPLETE
    assert len(seen) == 3
    objective, _ = failing([TimeoutError()])
    (trial,) = played(objective, kinds={"timeout": "bad"})
    assert failure_kind(trial) == "bad"


@pytest.mark.parametrize("error", [NameError("lerning_rate"), optuna.TrialPruned(), ValueError()])
def test_what_is_no_such_failure_is_raised(error):
    objective, seen = failing([error])
    with pytest.raises(type(error)):
        retrying(objective)(optuna.create_study().ask())
    assert len(seen) == 1


def ended(code):
    """The error of a program."""
    with pytest.raises(subprocess.CalledProcessError) as caught:
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    return caught.value


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_endings_of_real_programs():
    assert ending_of(ended("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")) == "killed"
    assert ending_of(ended(f"raise SystemExit(128 + {int(signal.SIGTERM)})")) == "killed"
    assert ending_of(ended("raise SystemExit(3)")) is None
    assert ending_of(ended("raise SystemExit(-1)")) is None  # 255, which is no signal
    assert ending_of(ended("raise MemoryError('out of memory')")) == "out of memory"
    with pytest.raises(subprocess.TimeoutExpired) as caught:
        subprocess.run([sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.2)
    assert ending_of(caught.value) == "timeout"


def test_a_worker_process_that_dies_is_killed():
    with ProcessPoolExecutor(1) as pool, pytest.raises(BrokenProcessPool) as caught:
        pool.submit(os._exit, 1).result()
    assert ending_of(caught.value) == "killed"


def test_a_page_without_memory_in_it_is_no_lack_of_memory():
    assert ending_of(ValueError("the layer is out of memory of its kind")) is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"attempts": 0}, "attempts must be at least 1, got 0"),
        ({"kinds": {"burnt": "bad"}}, "A run ends with one of 'out of memory'.*, got 'burnt'"),
        ({"kinds": {"nan": "sad"}}, "The kind of 'nan' must be None or one of .*, got 'sad'"),
    ],
)
def test_a_wrong_request_has_a_sentence(arguments, said):
    with pytest.raises(ValueError, match=said):
        retrying(lambda trial: 0.0, **arguments)


def test_the_sampler_avoids_where_memory_runs_out():
    def objective(trial):
        batch = trial.suggest_float("batch", 0.0, 1.0)
        if batch > 0.6:
            raise MemoryError
        return (batch - 0.9) ** 2  # better and better towards the border

    study = optuna.create_study(sampler=StoicSampler(seed=0, n_startup_trials=8))
    study.optimize(retrying(objective), n_trials=20)
    late = study.trials[8:]
    assert sum(trial.state == TrialState.FAIL for trial in late) <= len(late) / 2
    assert explain(study).recommended.params["batch"] <= 0.6
