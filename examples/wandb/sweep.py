"""W&B sweeps with our sampler: `agent` takes the configuration and the function as they are.

The configuration's `method` and `early_terminate` are not used. Where W&B's server starts the runs,
its own `wandb sweep-scheduler` (experimental, since 0.31) takes the sampler from this file, with
`scheduler: {engine: optuna, source: sweep.py, optimizer: study_of}` in the configuration.
"""

import itertools
import math
import os
import tempfile
from pathlib import Path
from unittest.mock import patch

import optuna
import wandb
import yaml
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from stoic.integrations.optuna import StoicPruner, StoicSampler, explain
from stoic.integrations.wandb import WandbCallback


def distribution(name, parameter):
    """A parameter of a sweep as a distribution of Optuna."""
    p = {key: each for key, each in parameter.items() if key != "distribution"}
    whole = all(isinstance(each, int) for each in p.values())
    match parameter.get("distribution"), sorted(p):
        case ((None | "constant"), ["value"]):
            return CategoricalDistribution([p["value"]])
        case ((None | "categorical"), ["values"]):
            return CategoricalDistribution(p["values"])
        case (None | "uniform" | "int_uniform") as kind, ["max", "min"]:
            integer = kind == "int_uniform" or (kind is None and whole)
            return (IntDistribution if integer else FloatDistribution)(p["min"], p["max"])
        case "q_uniform", ["max", "min", "q"]:
            number = IntDistribution if whole else FloatDistribution
            return number(p["min"], p["max"], step=p["q"])
        case "log_uniform_values", ["max", "min"]:
            return FloatDistribution(p["min"], p["max"], log=True)
    raise ValueError(
        f"Parameter {name!r} is {parameter}. It must be a value, values, or min and max with the "
        "distribution uniform, int_uniform, log_uniform_values, or q_uniform and its q."
    )


def study_of(sweep):
    metric = getattr(sweep, "config", sweep)["metric"]  # W&B's scheduler has it in an object
    return optuna.create_study(
        direction=metric.get("goal", "minimize"), sampler=StoicSampler(seed=0), pruner=StoicPruner()
    )


def summary_of(function, params):
    """Summary of the run that a training function makes with these parameters."""
    summary = {}

    def keeping(end):  # a run that has ended has no summary any more
        def ends(run, *args, **kwargs):
            summary.update(run.summary)
            return end(run, *args, **kwargs)

        return ends

    ends = {name: keeping(getattr(wandb.Run, name)) for name in ("finish", "__exit__")}
    with tempfile.TemporaryDirectory() as directory, patch.multiple(wandb.Run, **ends):
        path = Path(directory) / "config.yaml"
        path.write_text(yaml.safe_dump({name: {"value": each} for name, each in params.items()}))
        failed = True
        with patch.dict(os.environ, WANDB_SWEEP_PARAM_PATH=str(path)):  # as W&B's agent does
            wandb.teardown()  # W&B reads the environment only once
            try:
                function()
                failed = False
            finally:
                wandb.finish(int(failed))
                wandb.teardown()
    return summary


def agent(sweep, function, count):
    """Do what `wandb.agent(sweep_id, function, count=count)` does; return the study."""
    space = {name: distribution(name, each) for name, each in sweep["parameters"].items()}
    study = study_of(sweep)
    ours = {"WANDB_MODE": "offline", "WANDB_RUN_GROUP": sweep.get("name", study.study_name)}
    with patch.dict(os.environ, {**ours, **os.environ}):
        for _ in range(count):
            trial = study.ask(space)
            try:
                value = float(summary_of(function, trial.params)[sweep["metric"]["name"]])
            except Exception as error:  # of the function, whatever it is
                trial.set_user_attr("failure", f"{type(error).__name__}: {error}")
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                study.tell(trial, value)
        with WandbCallback(name="recommended") as tracker:
            tracker(study, study.trials[-1])
    return study


SWEEP = {
    "name": "robot",
    "method": "bayes",
    "metric": {"name": "loss", "goal": "minimize"},
    "parameters": {
        "lr": {"distribution": "log_uniform_values", "min": 1e-5, "max": 1e-1},
        "layers": {"min": 1, "max": 6},
        "optimizer": {"values": ["adam", "sgd"]},
        "epochs": {"value": 3},
    },
}
calls = itertools.count()


def train():
    number = next(calls)
    with wandb.init(config={"lr": 0.1}) as run:
        for epoch in range(run.config.epochs):
            if number == 4:
                raise MemoryError("the batch is too large")
            loss = (math.log10(run.config.lr) + 3) ** 2 + (run.config.layers - 3) ** 2
            run.log({"loss": -1e3 if number in (7, 13) else loss + 1 / (epoch + 1)})


def main():
    study = agent(SWEEP, train, count=20)
    found = explain(study)
    print("best result:", study.best_params, "recommended:", found.recommended.params)
    return study, found


if __name__ == "__main__":
    main()
