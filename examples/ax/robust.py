"""Ax with a surrogate that knows that results may be lies: here, each eighth one is."""

import random

from ax.adapter.registry import Generators, MBM_X_trans
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generation_strategy.transition_criterion import MinTrials
from ax.generators.torch.botorch_modular.surrogate import ModelConfig, SurrogateSpec

from stoic.integrations.botorch import RobustConjugateGP

random.seed(0)


def measure(x, y, trial):
    truth = -((x - 2.0) ** 2) - 3.0 * (y + 1.0) ** 2
    return 1e6 if trial % 8 == 5 else random.gauss(truth, 0.3)


surrogate = SurrogateSpec(model_configs=[ModelConfig(RobustConjugateGP)])
# Ax would clip results and divide them by their standard deviation, which one lie decides.
options = {"surrogate_spec": surrogate, "transforms": MBM_X_trans}
design = GeneratorSpec(Generators.SOBOL, generator_kwargs={"seed": 0})
robust = GeneratorSpec(Generators.BOTORCH_MODULAR, generator_kwargs=options)
start = GenerationNode("design", [design], transition_criteria=[MinTrials(8, "robust")])
strategy = GenerationStrategy(nodes=[start, GenerationNode("robust", [robust])])

client = Client(random_seed=0)
client.configure_experiment([RangeParameterConfig(k, (-5.0, 5.0), "float") for k in "xy"])
client.configure_optimization(objective="score")
client.set_generation_strategy(strategy)
for _ in range(24):
    [(trial, parameters)] = client.get_next_trials(max_trials=1).items()
    client.complete_trial(trial, {"score": measure(**parameters, trial=trial)})
parameters, estimate, _, _ = client.get_best_parameterization()
print(f"recommended: {parameters}, estimated at {estimate['score'][0]:.2f}")
