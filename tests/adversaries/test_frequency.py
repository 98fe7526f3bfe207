import math

import numpy as np
import pytest

from stoic.adversaries import Always, Clairvoyant, Frequency, Ledger, Replace, Round
from stoic.adversaries.base import NoAttack, same
from stoic.adversaries.frequency import APPENDIX, AT_ONCE, SETTINGS
from stoic.problems import forrester, mccormick


def seen(x, observed, t=1):
    """A round on a continuous domain."""
    return Round(x, None, 0.0, observed, t, np.random.default_rng(0), Ledger(), lambda: None)


def test_clairvoyant_lies_by_distance():
    attack = Clairvoyant(np.array([1.0]), near=0.2, far=0.5, low=-10.0, high=25.0)

    def told(x):
        return attack.rewrite(seen(np.array([x]), 3.5))

    assert [told(x) for x in (0.9, 1.0, 0.7, 0.3)] == [-10.0, -10.0, 3.5, 25.0]
    strict = Clairvoyant(np.zeros(2), near=2.5, far=5.0, low=-1.0, high=1.0)
    for x in ([1.5, 2.0], [3.0, -4.0]):  # 2.5 and 5 away
        assert strict.rewrite(seen(np.array(x), 0.1)) == 0.1


def test_near_beyond_far_is_refused():
    with pytest.raises(ValueError, match=r"near=0\.5, far=0\.2"):
        Clairvoyant(np.zeros(1), near=0.5, far=0.2, low=0.0, high=1.0)


def test_the_budgets_of_the_published_settings():
    optimum = forrester().optimum
    for published in SETTINGS.values():
        assert published.against(optimum, 100).budget == Frequency(4, (1, 8, 27, 64))
    assert APPENDIX.against(optimum, 30).budget == Frequency(3, (1, 8, 27))
    assert AT_ONCE.against(optimum, 100).budget == Frequency(4)
    assert AT_ONCE.against(optimum, 100, count=7).budget == Frequency(7)


def test_setting_aims_at_the_optimum_of_the_problem():
    problem = mccormick()
    attack = APPENDIX.against(problem.optimum, 100).attack
    assert attack.rewrite(seen(problem.optimum.x, 0.5)) == -10.0


@pytest.mark.parametrize("lie", [1e300, -1e300, math.inf, -math.inf, math.nan])
def test_replace_tells_anything_at_its_rounds(lie):
    attack = Replace({3: lie})
    x = np.zeros(1)
    assert same(attack.rewrite(seen(x, 0.5, 3)), lie)
    assert attack.rewrite(seen(x, 0.5, 4)) == 0.5


@pytest.mark.parametrize("told", [-2.0, -1000.0, math.inf, math.nan])
def test_always_tells_the_same_whatever_was_asked(told):
    attack = Always(told)
    for t, x in enumerate(np.linspace(0.0, 1.0, 5), start=1):
        assert same(attack.rewrite(seen(np.array([x]), 0.5 + x, t)), told)


def test_no_attack_tells_what_was_observed():
    assert NoAttack().rewrite(seen(np.zeros(1), 0.5)) == 0.5
    assert same(NoAttack().rewrite(seen(np.zeros(1), math.nan)), math.nan)
