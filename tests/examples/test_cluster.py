"""Workers of clusters share a study: its best result is wrong, and the recommended one is not."""

from __future__ import annotations

import warnings

import optuna
import pytest
from optuna.trial import TrialState

from pages import ROOT
from scripts import load


def check(recommended):
    # Which worker was faster decides where the search went; both wrong trials are farther away.
    assert (recommended["x"] - 0.3) ** 2 + (recommended["y"] + 1.0) ** 2 < 0.1


def test_workers_of_dask_share_a_study():
    distributed = pytest.importorskip("distributed", reason="pip install '.[dask]'")
    pytest.importorskip("optuna_integration", reason="pip install optuna-integration")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    local = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with local as cluster, distributed.Client(cluster) as client:
        study, found = load(ROOT / "examples/cluster/dask_workers.py").main(client, trials=24)
        trials, best = study.trials, study.best_trial.number
    assert [trial.number for trial in trials] == list(range(24))
    assert {trial.state for trial in trials} == {TrialState.COMPLETE}
    assert best in (6, 13)
    assert {row.number for row in found.rows if row.trust < 0.5} == {6, 13}
    check(found.recommended.params)


@pytest.mark.slow  # Ray starts processes for a minute or two
def test_an_actor_of_ray_holds_a_study(monkeypatch):
    ray = pytest.importorskip("ray", reason="pip install '.[ray]'")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Ray's own
        ray.init(num_cpus=2, include_dashboard=False)
        try:
            observed, recommended = load(ROOT / "examples/cluster/ray_actors.py").main(trials=24)
        finally:
            ray.shutdown()
    assert observed in (6, 13)
    check(recommended)
