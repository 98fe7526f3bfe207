"""The classifier of the contest: what a result is, what the truth is, and what goes wrong."""

import sys

import pytest

from stoic.experiments.contest import digits
from stoic.experiments.contest.digits import SCENES, Digits
from stoic.experiments.contest.scenes import World
from stoic.refusal import RefusalError

GOOD = {"C": 10.0, "gamma": 0.05, "components": 20}


def test_results_are_noisy_about_a_truth_that_is_not():
    world = World.of(Digits(), SCENES["right"], 0)
    results = [world.observe(GOOD, t) for t in range(8)]
    assert len(set(results)) > 2
    truth = Digits().truth(GOOD)
    assert truth == Digits().truth(dict(GOOD)) > 0.9
    assert Digits().score(GOOD) == 1.0 - truth
    assert abs(sum(results) / 8 - truth) < 0.03  # results have a deviation of 0.02
    bad = {"C": 0.01, "gamma": 1e-4, "components": 2}
    assert Digits().truth(bad) < 0.5
    assert 0.0 <= Digits().elsewhere(0, world.draws) <= 1.0


def test_wrong_results_are_leaks_and_crashes_on_the_same_splits():
    right, wrong = (World.of(Digits(), SCENES[key], 1) for key in ("right", "wrong"))
    kinds = {1.0: 0, 0.0: 0}
    for t in range(40):
        if wrong.is_outlier(t):
            kinds[wrong.observe(GOOD, t)] += 1
        elif t < 5:
            assert wrong.observe(GOOD, t) == right.observe(GOOD, t)
    assert min(kinds.values()) >= 1
    assert not any(right.is_outlier(t) for t in range(40))


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    digits._library.cache_clear()
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(RefusalError, match=r"pip install 'stoic\[contest\]'"):
        Digits().score({"C": 3.25, "gamma": 0.5, "components": 3})
    digits._library.cache_clear()
