import math
from dataclasses import replace

import numpy as np
import pytest

from stoic.experiments.methods import (
    GP,
    METHODS,
    RELEVANCE,
    RandomSearch,
    Threat,
    installed,
    method,
)
from stoic.problems import camel, forrester


def test_names_and_looks_are_distinct():
    assert len({m.name for m in METHODS}) == len(METHODS)
    assert len({(m.colour, m.line) for m in METHODS}) == len(METHODS)
    assert all(method(m.name) is m for m in METHODS)


def test_a_method_whose_library_is_missing_is_left_out():
    absent = replace(RELEVANCE, module="no_such_library")
    assert installed(GP, absent, replace(RELEVANCE, module="numpy")) == (GP.name, RELEVANCE.name)


@pytest.mark.parametrize("one", METHODS, ids=lambda m: m.name)
def test_every_method_asks_and_is_told(one):
    if one.module is not None:
        pytest.importorskip(one.module)
    domain = forrester().domain
    learner = one.build(domain, Threat(corruptions=2, horizon=10), 0)
    for x, y in zip(np.linspace(0, 1, 5), [1.0, 3.0, math.nan, -2.0, 1e9], strict=True):
        learner.tell(np.array([x]), float(y))
    [choice] = learner.ask_batch(1)
    domain.locate(choice.x[None])
    learner.tell(choice.x, 0.5)
    domain.locate(learner.recommend().x[None])


def test_random_search_is_reproducible_and_uniform():
    domain = camel().domain
    one, other = RandomSearch(domain, 3), RandomSearch(domain, 3)
    asked = np.array([choice.x for choice in one.ask_batch(4000)])
    np.testing.assert_array_equal(asked[:10], [other.ask_batch(1)[0].x for _ in range(10)])
    unit = (asked - domain.lower) / domain.widths
    # 4.5 standard errors of a uniform mean: a false alarm in about 10^5 seeds
    assert np.all(np.abs(unit.mean(axis=0) - 0.5) < 4.5 / math.sqrt(12 * 4000))


def test_random_search_recommends_the_luckiest():
    learner = RandomSearch(forrester().domain, 0)
    for x, y in [(0.1, 1.0), (0.2, math.nan), (0.3, 7.0), (0.4, -math.inf)]:
        learner.tell(np.array([x]), y)
    assert learner.recommend().x[0] == 0.3


def test_random_search_that_was_told_nothing_recommends_a_point():
    domain = forrester().domain
    domain.locate(RandomSearch(domain, 0).recommend().x[None])
