"""Callback that logs a study to Weights & Biases."""

from __future__ import annotations

from typing import Any

from stoic.integrations.tracking import Snapshot, Tracker

try:
    import wandb
except ImportError as error:
    raise ImportError(
        "stoic.integrations.wandb needs wandb, which is not installed: pip install 'stoic[wandb]'."
    ) from error

__all__ = ["WandbCallback"]

_PREFIX = "stoic/"  # of metrics


class WandbCallback(Tracker):
    """Optuna callback that logs recommendation, trust and failures of a study to a W&B run.

    The metrics are plotted over ``stoic/trial``, the number of the trial, since workers may end
    their trials in any order: ``stoic/value`` and ``stoic/trust`` of the trial,
    ``stoic/observed_best``, ``stoic/recommended_mean`` and ``stoic/recommended_std``, the numbers
    of trials that are ``stoic/distrusted`` and ``stoic/failed``, and of failures of each kind. The
    summary holds the recommended parameters. Closing the callback logs ``stoic/trials``, a table
    with the trust of all trials as it is then. Numbers that are not finite are left out. With
    several objectives values and trust have their names after a dot, and the sizes of the fronts,
    ``stoic/recommended_front``, are there instead of a recommended trial. ::

        with WandbCallback(project="digits") as tracker:
            study.optimize(objective, n_trials=50, callbacks=[tracker])

    Parameters
    ----------
    run:
        Run to log to; by default a new one, which closing the callback finishes.
    every:
        See :class:`~stoic.integrations.tracking.Tracker`.
    **init:
        Arguments of ``wandb.init`` for a new run.

    Raises
    ------
    ValueError
        If both a run and arguments for a new one are given.
    """

    def __init__(self, run: Any = None, *, every: int = 1, **init: Any) -> None:
        super().__init__(every)
        if run is not None and init:
            raise ValueError(f"{', '.join(init)} would be for a new run: leave out that, or run.")
        self._owns = run is None
        self.run: Any = wandb.init(**init) if run is None else run
        self.run.define_metric(f"{_PREFIX}*", step_metric=f"{_PREFIX}trial")
        self._last_taken: Snapshot | None = None

    def write(self, taken: Snapshot) -> None:
        metrics = {_PREFIX + name: value for name, value in taken.metrics.items()}
        self.run.log({f"{_PREFIX}trial": taken.number} | metrics)
        if taken.recommended:
            self.run.summary[f"{_PREFIX}recommended"] = taken.recommended
        self._last_taken = taken

    def finish(self, failed: bool) -> None:
        if (taken := self._last_taken) is not None and taken.rows:
            rows = [list(row) for row in taken.rows]
            table = wandb.Table(columns=list(taken.columns), data=rows)
            self.run.log({f"{_PREFIX}trials": table})
        if self._owns:
            self.run.finish(exit_code=int(failed))
