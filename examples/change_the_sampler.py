"""A study with a crash and a wrong result: change the sampler, keep the rest."""

import optuna

from stoic.integrations.optuna import StoicSampler, explain


def objective(trial):
    x = trial.suggest_float("x", 0.0, 1.0)
    y = trial.suggest_float("y", -3.0, 3.0)
    wrong = {7: float("nan"), 12: -1e6}
    return wrong.get(trial.number, (x - 0.3) ** 2 + (y + 1.0) ** 2)


def main():
    study = optuna.create_study(sampler=StoicSampler(seed=0))
    study.optimize(objective, n_trials=25)
    found = explain(study)
    print("observed best:", found.observed_best.number, "recommended:", found.recommended.params)
    return found.recommended.params


if __name__ == "__main__":
    main()
