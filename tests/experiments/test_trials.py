import math
from typing import NamedTuple

import numpy as np
import pytest

from stoic.experiments.statistics import Estimate, Interval, bootstrap, mean_ratio, share
from stoic.experiments.trials import comparison, grouped, marks


class Row(NamedTuple):
    panel: str
    method: str
    seed: int
    round: int
    cumulative_regret: float
    other: float


def trials(**curves):
    """Trials of one method, by ``_SEED``."""
    return grouped(
        Row("p", "m", int(seed[1:]), t, regret, -regret)
        for seed, curve in curves.items()
        for t, regret in enumerate(curve, start=1)
    )["p", "m"]


def test_trials_are_collected_by_panel_and_method_in_the_order_of_the_rows():
    rows = [
        Row(panel, method, seed, t, 10.0 * seed + t, 1.0)
        for panel in ("q", "p")
        for method in ("m", "n")
        for seed in (6, 4, 5)
        for t in (2, 7)
    ]
    groups = grouped(rows)
    assert list(groups) == [("q", "m"), ("q", "n"), ("p", "m"), ("p", "n")]
    one = groups["p", "n"]
    assert one.seeds == (6, 4, 5)
    assert one.rounds.tolist() == [2, 7]
    assert one.curves().tolist() == [[62.0, 67.0], [42.0, 47.0], [52.0, 57.0]]
    assert one.final().tolist() == [67.0, 47.0, 57.0]
    assert one.final("other").tolist() == [1.0] * 3
    assert one.among({5, 6, 7}).seeds == (5, 6)
    assert one.among({5, 6}).final().tolist() == [57.0, 67.0]


def test_estimate_by_hand():
    estimate = Estimate.of(np.array([1.0, 2.0, 6.0]))
    assert estimate.mean == 3.0
    assert estimate.error == pytest.approx(math.sqrt(7.0 / 3.0))  # variance (4 + 1 + 9) / 2 = 7
    assert math.isnan(Estimate.of(np.array([2.0])).error)
    assert str(Estimate.of(np.array([2.0]))) == "2"


def test_comparison_is_paired():
    measured = comparison(
        trials(_0=[0.0, 1.0], _1=[0.0, 11.0]), trials(_0=[0.0, 3.0], _1=[0.0, 13.0])
    )
    assert measured["mean"] == 6.0
    assert measured["standard_error"] == pytest.approx(5.0)
    assert measured["reference_mean"] == 8.0
    assert measured["paired_difference"] == -2.0
    assert measured["paired_standard_error"] == 0.0
    assert measured["trials_with_less_regret"] == 2.0


def test_comparison_is_on_the_seeds_of_both():
    ours, theirs = trials(_3=[1.0], _4=[2.0], _5=[9.0]), trials(_8=[7.0], _4=[2.0], _3=[4.0])
    measured = comparison(ours, theirs)
    assert measured["trials"] == 2.0
    assert measured["mean"] == 1.5
    assert measured["reference_mean"] == 3.0
    assert measured["paired_standard_error"] == pytest.approx(1.5)  # of -3 and 0
    assert comparison(ours, theirs, "other")["paired_difference"] == pytest.approx(1.5)


@pytest.mark.parametrize("rounds", [1, 2, 3, 199, 200, 201, 12_345, 50_000])
def test_marks_are_few_and_have_the_middle_and_the_end(rounds):
    kept = marks(rounds)
    assert kept == sorted(set(kept))
    assert kept[-1] == rounds
    assert rounds // 2 in [0, *kept]
    assert 1 <= kept[0] <= math.ceil(rounds / 200)
    assert len(kept) in (min(rounds, 200), 200 + 1)


def test_intervals_as_text():
    assert str(Interval(0.1234, math.nan, math.nan)) == "0.12"
    assert str(Interval(0.1234, 0.1, 0.2)) == "0.12 [0.1, 0.2]"
    assert Interval(0.125, 0.1, 0.2).text(".1f", 100.0, " %") == "12.5 % [10.0, 20.0]"
    assert Interval(math.nan, math.nan, math.nan).text() == ""


def test_intervals_cover_what_they_say():
    """95 % of 100 intervals cover: 86 to 100 % but for one in 1000 such tests."""
    rng, covered = np.random.default_rng(0), np.zeros(2)
    for _ in range(100):
        found = bootstrap(rng.normal(size=(4, 20)), np.mean)
        happened = share((rng.random(100) < 0.1).tolist())
        covered += [found.lower <= 0.0 <= found.upper, happened.lower <= 0.1 <= happened.upper]
    assert min(covered) >= 86


def test_too_few_trials_have_no_interval():
    assert math.isnan(bootstrap(np.array([[0.1], [0.2]]), np.mean).lower)
    assert bootstrap(np.array([[0.1], [0.2]]), np.mean, fewest=1)[1:] == pytest.approx((0.15, 0.15))
    assert math.isnan(share([None, None]).value)
    none = share([False] * 160 + [None])
    assert none.value == none.lower == 0.0
    assert none.upper == pytest.approx(0.0234, abs=1e-3)


def test_ratios_are_of_means_of_paired_trials():
    assert mean_ratio([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]) == pytest.approx((0.5, 0.5, 0.5))
