import optuna
import optunahub

plot_trust = optunahub.load_module(package="visualization/stoic_trust").plot_trust


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", 0.0, 1.0)
    y = trial.suggest_float("y", -3.0, 3.0)
    if trial.number == 12:
        return -10.0  # a wrong result, and the best value of all
    return (x - 0.3) ** 2 + (y + 1.0) ** 2


if __name__ == "__main__":
    sampler = optuna.samplers.TPESampler(seed=0)
    study = optuna.create_study(study_name="tuned", sampler=sampler)
    study.optimize(objective, n_trials=30)
    plot_trust(study).savefig("trust.png")
