import optuna
import optunahub

stoic = optunahub.load_module(package="samplers/stoic")


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", 0.0, 1.0)
    y = trial.suggest_float("y", -3.0, 3.0)
    if trial.number == 7:
        return float("nan")  # a crash
    if trial.number == 12:
        return -1e6  # a wrong result, and the best value of all
    return (x - 0.3) ** 2 + (y + 1.0) ** 2


if __name__ == "__main__":
    study = optuna.create_study(sampler=stoic.StoicSampler(seed=0))
    study.optimize(objective, n_trials=25)
    explanation = stoic.explain(study)
    print("observed best:", explanation.observed_best.params)
    print("recommended:", explanation.recommended.params)
    print("distrusted:", [row.number for row in explanation.rows if row.trust < 0.5])
