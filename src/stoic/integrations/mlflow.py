"""Callback that logs a study to MLflow."""

from __future__ import annotations

import re
import time
from typing import Any

from stoic.integrations.tracking import Snapshot, Tracker

try:
    from mlflow.entities import Metric, RunTag
    from mlflow.tracking import MlflowClient
except ImportError as error:
    raise ImportError(
        "stoic.integrations.mlflow needs MLflow, which is not installed: "
        "pip install 'stoic[mlflow]'."
    ) from error

__all__ = ["MLflowCallback"]

_PREFIX = "stoic."  # of metrics and tags
_REFUSED = re.compile(r"[^\w\-. /]")  # by some server in the name of a metric or a tag
_LONGEST = 250  # name, in characters


class MLflowCallback(Tracker):
    """Optuna callback that logs recommendation, trust and failures of a study to an MLflow run.

    The step of a metric is the number of the trial: ``stoic.value`` and ``stoic.trust`` of the
    trial, ``stoic.observed_best``, ``stoic.recommended_mean`` and ``stoic.recommended_std``, the
    numbers of trials that are ``stoic.distrusted`` and ``stoic.failed``, and of failures of each
    kind. Tags hold the recommended parameters. The artifact ``stoic/trials.json`` is a table with
    the trust of all trials as it is now, since later results change it. Numbers that are not finite
    are left out. With several objectives values and trust have their names after a dot, and the
    sizes of the fronts, ``stoic.recommended_front``, are there instead of a recommended trial.

    It logs into one run, and leaves MLflow's active run alone::

        with MLflowCallback() as tracker:
            study.optimize(objective, n_trials=50, callbacks=[tracker])

    Parameters
    ----------
    tracking_uri:
        Server or store, by default MLflow's own.
    experiment:
        Name of an experiment, created if there is none; by default MLflow's default one.
    run_name:
        Name of a new run.
    run_id:
        Run to go on with, instead of a new one.
    every:
        See :class:`~stoic.integrations.tracking.Tracker`.

    Raises
    ------
    ValueError
        If both a name for a new run and an existing run are given.
    mlflow.exceptions.MlflowException
        If the store cannot be used.
    """

    def __init__(
        self,
        tracking_uri: str | None = None,
        *,
        experiment: str | None = None,
        run_name: str | None = None,
        run_id: str | None = None,
        every: int = 1,
    ) -> None:
        super().__init__(every)
        if run_id is not None and (run_name is not None or experiment is not None):
            raise ValueError("A run_id names a run that exists: leave out experiment and run_name.")
        self.client: Any = MlflowClient(tracking_uri)
        self._owns = run_id is None
        if run_id is None:
            found = self.client.get_experiment_by_name(experiment or "Default")
            name = experiment or "Default"
            where = self.client.create_experiment(name) if found is None else found.experiment_id
            run_id = self.client.create_run(where, run_name=run_name).info.run_id
        else:
            self.client.get_run(run_id)  # raises if there is none
        self.run_id: str = run_id

    def write(self, taken: Snapshot) -> None:
        now = int(time.time() * 1000)  # milliseconds, MLflow's unit
        metrics = [
            Metric(_key(name), value, now, taken.number) for name, value in taken.metrics.items()
        ]
        tags = [
            RunTag(_key(f"recommended.{name}"), str(value))
            for name, value in taken.recommended.items()
        ]
        self.client.log_batch(self.run_id, metrics=metrics, tags=tags)
        table = {"columns": list(taken.columns), "data": [list(row) for row in taken.rows]}
        self.client.log_dict(self.run_id, table, "stoic/trials.json")

    def finish(self, failed: bool) -> None:
        if self._owns:
            self.client.set_terminated(self.run_id, "FAILED" if failed else "FINISHED")


def _key(name: str) -> str:
    return _REFUSED.sub("_", _PREFIX + name)[:_LONGEST]
