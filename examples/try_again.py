"""An Optuna script whose failures are classified, and tried again where that may help."""

import optuna

from stoic.integrations.optuna import StoicSampler
from stoic.integrations.retrying import retrying


def main():
    calls = []

    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        calls.append(x)
        if len(calls) == 4:
            raise ConnectionResetError("the worker is gone")  # run again at once
        if x > 0.8:
            raise MemoryError  # infeasible: avoided from now on
        return (x - 0.3) ** 2

    study = optuna.create_study(sampler=StoicSampler(seed=0))
    study.optimize(retrying(objective), n_trials=15)
    print("runs:", len(calls), "trials:", len(study.trials))
    return calls, study.trials


if __name__ == "__main__":
    main()
