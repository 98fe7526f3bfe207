"""Ray Tune through its search by Optuna: the sampler is ours, Ray runs the trials."""

from pathlib import Path

import optuna
from ray import tune
from ray.tune.search import ConcurrencyLimiter
from ray.tune.search.optuna import OptunaSearch

from stoic.integrations.optuna import StoicSampler, explain


def train(config):
    loss = (config["x"] - 0.3) ** 2 + (config["y"] + 1.0) ** 2
    number = int(Path(tune.get_context().get_trial_dir()).name.split("_")[2])  # from 1
    tune.report({"loss": -1e3 if number in (6, 13) else loss})  # two results are wrong


def main(directory):
    storage = optuna.storages.InMemoryStorage()
    search = OptunaSearch(sampler=StoicSampler(seed=0), study_name="ray", storage=storage)
    tuner = tune.Tuner(
        train,
        param_space={"x": tune.uniform(0.0, 1.0), "y": tune.uniform(-3.0, 3.0)},
        tune_config=tune.TuneConfig(
            metric="loss", mode="min", num_samples=30, search_alg=ConcurrencyLimiter(search, 2)
        ),
        run_config=tune.RunConfig(storage_path=str(directory), verbose=0),
    )
    best = tuner.fit().get_best_result()
    found = explain(optuna.load_study(study_name="ray", storage=storage))
    print("best result:", best.config, "recommended:", found.recommended.params)
    return best.config, found.recommended.params


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as directory:
        main(directory)
