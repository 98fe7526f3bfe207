"""Number of threads of the linear algebra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from threading import Lock
from typing import Any

# Rows of a model, up to which one thread is enough. A first fit and an ask take 0.6 of what they
# take with two threads at 1,000 rows, and 0.9 of it at 1,500.
_SMALL = 1000
_COUNTING = Lock()
_inside = 0  # blocks that run
_before: list[int] = []  # number of threads of each library, before the first of them


@cache
def _libraries() -> list[Any]:
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    # 6 ms
    found: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return found


def _set(numbers: list[int]) -> None:
    for library, number in zip(_libraries(), numbers, strict=True):
        # Since threadpoolctl 3.8 the first thread that sets a number is the only one that can
        free = getattr(library, "clear_controlling_thread", lambda *, force: None)
        free(force=True)
        library.set_num_threads(number)
        free(force=True)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS have one thread in a block, or in a function that this decorates.

    Where matrices have a few hundred rows several threads wait for one another most of the time.
    With two processors and nothing else to do an ask after 150 results takes 0.05 s with one, and
    0.22 s with two; beside two other programs it takes 0.09 and 2.4. The whole process has the
    limit meanwhile. Blocks may overlap, in several threads: the last one to end restores what was
    before the first.
    """
    global _inside, _before
    with _COUNTING:
        _inside += 1
        if _inside == 1:
            _before = [library.num_threads for library in _libraries()]
            _set([1] * len(_before))
    try:
        yield
    finally:
        with _COUNTING:
            _inside -= 1
            if not _inside:
                _set(_before)


def enough_threads(rows: float) -> AbstractContextManager[None]:
    """Let BLAS have as many threads as a model of so many rows is worth: one, or all."""
    return one_thread() if rows <= _SMALL else nullcontext()
