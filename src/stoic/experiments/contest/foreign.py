"""Optimizers of other libraries as Optuna samplers: SMAC, and BoTorch's relevance pursuit."""

from __future__ import annotations

import math
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import RandomSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from stoic.data import Array
from stoic.domains import Box
from stoic.experiments.peers import RelevancePursuit
from stoic.refusal import RefusalError

_DESIGN = 10  # random points before the model is used, as in Optuna's and stoic's samplers
Space = Mapping[str, BaseDistribution]


class Optimizer(Protocol):
    """Optimizer that suggests one configuration at a time."""

    def ask(self) -> dict[str, Any]:
        """Suggest a configuration."""

    def tell(self, params: Mapping[str, Any], loss: float) -> None:
        """Observe a result, which is minimised; nan for a failed run."""

    def recommend(self) -> dict[str, Any]:
        """Return its own recommendation, which need not be the best result."""


class Adapter(RandomSampler):
    """Optimizer that knows its search space beforehand, as an Optuna sampler for one worker.

    Parameters outside of the space, of which the contest has none, are drawn at random.

    Parameters
    ----------
    space:
        All parameters.
    optimizer:
        Optimizer whose suggestions are run.
    """

    def __init__(self, space: Space, optimizer: Optimizer) -> None:
        super().__init__(seed=0)
        self.space = dict(space)
        self.optimizer = optimizer

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, Any]:
        return self.space

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return self.optimizer.ask()

    def after_trial(
        self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        sign = -1.0 if study.direction == StudyDirection.MAXIMIZE else 1.0
        self.optimizer.tell(trial.params, sign * values[0] if values else math.nan)


def relevance_pursuit(space: Space, seed: int, trials: int) -> Adapter:
    """:class:`~stoic.experiments.peers.RelevancePursuit` after a random design."""
    return Adapter(space, _Pursuit(space, seed))


class _Pursuit:
    def __init__(self, space: Space, seed: int) -> None:
        ends = [
            (d.low, d.high)
            for d in space.values()
            if isinstance(d, FloatDistribution) and not d.log and d.step is None
        ]
        if len(ends) < len(space):
            raise RefusalError("Relevance pursuit needs a search space of linear floats only.")
        self.names = list(space)
        lower, upper = np.array(ends).T
        self.player = RelevancePursuit(Box(lower, upper), seed)
        self.rng = np.random.default_rng(seed)
        self.results = 0

    def ask(self) -> dict[str, Any]:
        if self.results < _DESIGN:
            return self._named(self.player.domain.sample(1, self.rng)[0])
        return self._named(self.player.ask_batch(1)[0].x)

    def recommend(self) -> dict[str, Any]:
        return self._named(self.player.recommend().x)

    def tell(self, params: Mapping[str, Any], loss: float) -> None:
        self.results += 1
        self.player.tell(np.array([[params[name] for name in self.names]]), np.array([-loss]))

    def _named(self, x: Array) -> dict[str, Any]:
        return dict(zip(self.names, x.tolist(), strict=True))


def smac(space: Space, seed: int, trials: int) -> Adapter:
    """SMAC's facade for hyperparameters, with its defaults; it may repeat a configuration."""
    return Adapter(space, _Smac(space, seed, trials))


class _Smac:
    def __init__(self, space: Space, seed: int, trials: int) -> None:
        library, runhistory = import_module("smac"), import_module("smac.runhistory")
        configurations = import_module("ConfigSpace")
        self.value, self.status = runhistory.TrialValue, runhistory.StatusType
        directory = tempfile.mkdtemp()  # SMAC writes into it at every result
        weakref.finalize(self, shutil.rmtree, directory, ignore_errors=True)
        plain = {name: _plain(d) for name, d in space.items()}
        facade = library.HyperparameterOptimizationFacade
        scenario = library.Scenario(
            configurations.ConfigurationSpace(space=plain, seed=seed),
            n_trials=trials + 1,  # SMAC refuses to suggest the last one
            seed=seed,
            output_directory=directory,
        )
        design = facade.get_initial_design(scenario, n_configs=min(_DESIGN, trials))
        self.facade = facade(
            scenario, _never, initial_design=design, overwrite=True, logging_level=False
        )
        self.info: Any = None

    def ask(self) -> dict[str, Any]:
        self.info = self.facade.ask()
        return _values(self.info.config)

    def recommend(self) -> dict[str, Any]:
        # The incumbent: the best mean over the runs of a configuration
        incumbent = self.facade.intensifier.get_incumbent()
        return _values(self.info.config if incumbent is None else incumbent)

    def tell(self, params: Mapping[str, Any], loss: float) -> None:
        failed = math.isnan(loss)
        status = self.status.CRASHED if failed else self.status.SUCCESS
        self.facade.tell(self.info, self.value(cost=math.inf if failed else loss, status=status))


def _never(config: Any, seed: int = 0) -> float:
    raise AssertionError("SMAC does not run anything itself")


def _values(config: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the values of a configuration from NumPy to plain Python types."""
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in dict(config).items()
    }


def _plain(distribution: BaseDistribution) -> Any:
    """Convert a parameter to ConfigSpace's short form."""
    if isinstance(distribution, CategoricalDistribution):
        return list(distribution.choices)
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    return (distribution.low, distribution.high)
