"""A setting that stays good when it is moved: the wide valley, not the narrow one."""

import math

import optuna

from stoic.integrations.optuna import StoicSampler, explain


def valleys(trial):
    heat = trial.suggest_float("heat", 0.0, 100.0)
    narrow = 0.95 * math.exp(-(((heat - 30.0) / 1.5) ** 2))  # down to 0.05, 2 degrees wide
    wide = 0.8 * math.exp(-(((heat - 70.0) / 8.0) ** 2))  # down to 0.2
    return 1.0 - narrow - wide


def main():
    sampler = StoicSampler(seed=0, threshold=0.4, tolerance={"heat": 2.0})
    study = optuna.create_study(sampler=sampler)
    study.optimize(valleys, n_trials=30)
    certified = explain(study).certified
    print(certified.sentence())
    return certified.params["heat"]


if __name__ == "__main__":
    main()
