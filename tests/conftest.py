"""One profile for all property tests, the same examples in every run; fixtures of many folders."""

import pytest
from hypothesis import settings

from stoic.problems import robot

settings.register_profile("stoic", derandomize=True, deadline=None, max_examples=25, database=None)
settings.load_profile("stoic")


@pytest.fixture
def box2d():
    """For tests that push: skipped where Box2D is not installed."""
    try:
        robot._box2d()
    except ImportError as error:
        pytest.skip(str(error))
