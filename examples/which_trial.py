"""Which trial of an old study is really best? No trial is run again."""

import numpy as np
import optuna

from stoic.integrations.optuna import explain


def objective(trial):
    x = trial.suggest_float("x", 0.0, 1.0)
    if trial.number in (6, 17):
        return -0.5  # the test set leaked
    return (x - 0.3) ** 2 + 0.02 * np.random.default_rng(trial.number).normal()


def main():
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(objective, n_trials=40)
    found = explain(study)
    distrusted = [row.number for row in found.rows if row.trust < 0.5]
    print("best_trial:", study.best_trial.number, "distrusted:", distrusted)
    print("recommended:", found.recommended.params, found.recommended_mean, found.recommended_std)
    return distrusted, found.recommended.params


if __name__ == "__main__":
    main()
