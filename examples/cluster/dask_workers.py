"""Workers of a Dask cluster share one study, which Optuna's DaskStorage keeps on the scheduler."""

import optuna
from distributed import Client, LocalCluster
from optuna_integration import DaskStorage

from stoic.integrations.optuna import StoicSampler, explain


def loss(trial):
    x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", -3.0, 3.0)
    if trial.number in (6, 13):
        return -1e3  # wrong
    return (x - 0.3) ** 2 + (y + 1.0) ** 2


def main(client, workers=2, trials=30):
    storage = DaskStorage(client=client)
    study = optuna.create_study(sampler=StoicSampler(seed=0), storage=storage)
    each = trials // workers
    runs = [client.submit(study.optimize, loss, n_trials=each, pure=False) for _ in range(workers)]
    client.gather(runs)
    return study, explain(study)


if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1) as cluster, Client(cluster) as client:
        study, found = main(client)
        print(f"observed best: trial {study.best_trial.number}, {study.best_value:g}")
        print(found)
