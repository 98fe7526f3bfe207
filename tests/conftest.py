"""One profile for all property tests: the same examples in every run."""

from hypothesis import settings

settings.register_profile("stoic", derandomize=True, deadline=None, max_examples=25, database=None)
settings.load_profile("stoic")
