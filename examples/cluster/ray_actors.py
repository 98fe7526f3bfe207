"""An actor of Ray holds the study; tasks on any machine of the cluster ask it, and tell it."""

import optuna
import ray
from optuna.distributions import FloatDistribution

from stoic.integrations.optuna import StoicSampler, explain

SPACE = {"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(-3.0, 3.0)}


@ray.remote
class Study:
    def __init__(self):
        self.study = optuna.create_study(sampler=StoicSampler(seed=0))

    def ask(self):
        trial = self.study.ask(SPACE)
        return trial.number, trial.params

    def tell(self, number, value):
        self.study.tell(number, value)

    def explain(self):
        return self.study.best_trial.number, explain(self.study).recommended.params


@ray.remote
def work(study, trials):
    for _ in range(trials):
        number, setting = ray.get(study.ask.remote())
        value = (setting["x"] - 0.3) ** 2 + (setting["y"] + 1.0) ** 2
        ray.get(study.tell.remote(number, -1e3 if number in (6, 13) else value))  # two are wrong


def main(workers=2, trials=30):
    study = Study.remote()
    ray.get([work.remote(study, trials // workers) for _ in range(workers)])
    return ray.get(study.explain.remote())


if __name__ == "__main__":
    ray.init()  # on a cluster: ray.init("auto")
    print("observed best: trial {}, recommended: {}".format(*main()))
