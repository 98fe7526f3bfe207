import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoic.adversaries import Frequency, Ledger, Magnitude, Unlimited, cube_root
from stoic.adversaries.base import same
from stoic.adversaries.budgets import cubic_releases


@given(st.integers(0, 10**15))
def test_cube_root_is_the_floor(rounds):
    root = cube_root(rounds)
    assert root**3 <= rounds < (root + 1) ** 3


def test_cube_root_of_cubes_does_not_lose_one_to_rounding():
    roots = [cube_root(t) for t in (0, 1, 7, 8, 27, 30, 64, 100, 125, 1000)]
    assert roots == [0, 1, 1, 2, 3, 3, 4, 4, 5, 10]
    with pytest.raises(ValueError, match="at least 0"):
        cube_root(-1)


def test_frequency_allows_its_count_and_no_more():
    budget, spent = Frequency(2), Ledger()
    told = []
    for t in range(1, 6):
        y = budget.allow(9.0, 1.0, t, spent)
        told.append(y)
        if y != 1.0:
            spent.record(1.0, y)
    assert told == [9.0, 9.0, 1.0, 1.0, 1.0]


def test_releases_accumulate():
    budget, spent = Frequency(4, cubic_releases(4)), Ledger()
    assert budget.allow(9.0, 1.0, 1, spent) == 9.0
    spent.record(1.0, 9.0)
    assert budget.allow(9.0, 1.0, 7, spent) == 1.0
    assert budget.allow(9.0, 1.0, 27, spent) == 9.0  # the second, kept since round 8
    spent.record(1.0, 9.0)
    assert budget.allow(9.0, 1.0, 27, spent) == 9.0  # the third
    spent.record(1.0, 9.0)
    assert budget.allow(9.0, 1.0, 63, spent) == 1.0
    assert budget.allow(9.0, 1.0, 64, spent) == 9.0
    assert cubic_releases(4) == (1, 8, 27, 64)


def test_count_bounds_releases():
    assert Frequency(0, (1, 2)).allow(9.0, 1.0, 5, Ledger()) == 1.0
    assert Unlimited().allow(math.inf, 1.0, 1, Ledger()) == math.inf


def test_ledger_books_changes_of_any_size():
    ledger = Ledger()
    ledger.record(1.0, -2.0)
    assert (ledger.count, ledger.magnitude) == (1, 3.0)
    ledger.record(1.0, math.nan)
    assert (ledger.count, ledger.magnitude) == (2, math.inf)


def test_impossible_budgets_are_refused():
    for count in (-1, 2.5, math.nan, math.inf):
        with pytest.raises(ValueError, match=f"at least 0, got {count}"):
            Frequency(count)
    with pytest.raises(ValueError, match="must rise"):
        Frequency(2, (8, 1))


def spend(budget, wishes):
    """The ledger after all wishes, pairs of observed and wanted, and what was told."""
    spent, told = Ledger(), []
    for t, (observed, wanted) in enumerate(wishes, start=1):
        y = budget.allow(wanted, observed, t, spent)
        told.append(y)
        if not same(y, observed):
            spent.record(observed, y)
    return spent, told


def test_the_last_corruption_is_cut_to_what_is_left():
    spent, told = spend(Magnitude(2.5), [(1.0, 3.0), (1.0, -3.0), (1.0, 0.0)])
    assert told == [3.0, 0.5, 1.0]
    assert spent == Ledger(2, 2.5)
    assert Magnitude(2.5).exhausted(spent)


def test_a_total_refuses_what_has_no_size():
    wishes = [(1.0, math.nan), (math.inf, 0.0), (math.nan, 0.0), (1.0, -math.inf)]
    spent, told = spend(Magnitude(2.0), wishes)
    assert told[:2] == [1.0, math.inf]
    assert math.isnan(told[2])
    assert told[3] == -1.0  # as far as the total reaches
    assert spent.magnitude == 2.0
    with pytest.raises(ValueError, match="finite and at least 0"):
        Magnitude(math.inf)


@settings(max_examples=300)
@given(
    st.floats(0.0, 1e3),
    st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats()), min_size=1, max_size=12),
)
def test_no_attack_exceeds_the_total(total, wishes):
    spent, told = spend(Magnitude(total), wishes)
    changes = [abs(y - o) for y, (o, _) in zip(told, wishes, strict=True) if not same(y, o)]
    assert math.fsum(changes) <= total + 1e-12
    assert spent.magnitude <= total + 1e-12


@pytest.mark.parametrize("total", [50.0, 100.0, 500.0])
def test_fifty_thousand_small_corruptions_do_not_exceed_the_total(total):
    rng = np.random.default_rng(1)
    observed = rng.normal(0.0, 2.0, 50_000)
    wanted = observed + rng.exponential(1.2 * total / 50_000, 50_000)
    spent, told = spend(Magnitude(total), zip(observed.tolist(), wanted.tolist(), strict=True))
    exact = math.fsum(abs(y - o) for y, o in zip(told, observed.tolist(), strict=True))
    assert exact <= total + 1e-12
    assert exact >= total - 1e-9
    assert Magnitude(total).exhausted(spent)


def test_a_cut_that_rounding_would_carry_too_far_is_taken_back():
    cut = 0
    for k in range(2000):
        observed, total = 1.0 + k / 7.0, 1.0 / (3.0 + k)
        told = Magnitude(total).allow(observed + 9.0, observed, 1, Ledger())
        assert told - observed <= total
        cut += told != observed + total
    assert cut > 0
