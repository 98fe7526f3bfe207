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
_LIMITED = Lock()  # locked while a block has set the limit


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()  # takes 6 ms


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS have one thread in a block, or in a function that this decorates.

    Where matrices have a few hundred rows several threads wait for one another most of the time.
    With two processors and nothing else to do an ask after 150 results takes 0.05 s with one, and
    0.22 s with two; beside two other programs it takes 0.09 and 2.4. The whole process has the
    limit meanwhile. Where blocks overlap the first one sets it, and restores at its end what was
    before.
    """
    if not _LIMITED.acquire(blocking=False):
        yield
        return
    try:
        with _libraries().limit(limits=1, user_api="blas"):
            yield
    finally:
        _LIMITED.release()


def enough_threads(rows: float) -> AbstractContextManager[None]:
    """Let BLAS have as many threads as a model of so many rows is worth: one, or all."""
    return one_thread() if rows <= _SMALL else nullcontext()
