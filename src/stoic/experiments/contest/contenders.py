"""Contenders: widely used optimizers, and every recipe of stoic by its text.

All are Optuna samplers in the same loop. A peer's library is an extra, imported when it is used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler

from stoic.experiments.contender import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    YELLOW,
)
from stoic.experiments.contender import Contender as Method
from stoic.experiments.contest import foreign
from stoic.integrations.optuna import StoicSampler
from stoic.refusal import RefusalError

DEFAULT = "default"
EXPLAINED = " + explain"  # the recommendation of ``explain`` on the trials of a peer


@dataclass(frozen=True)
class Contender(Method[[Mapping[str, BaseDistribution], int, int], BaseSampler]):
    """Contender that is built from a search space, a seed and the number of trials.

    Attributes
    ----------
    peer:
        True if it is not ours: then its own recommendation is ``study.best_trial``.
    extra:
        The extra that installs its module.
    numbers_only:
        True if every parameter has to be a float.
    """

    peer: bool = True
    extra: str | None = None
    numbers_only: bool = False

    def sampler(self, space: Mapping[str, BaseDistribution], seed: int, trials: int) -> BaseSampler:
        """Build a new sampler; ``RefusalError`` names the extra if its library is missing."""
        if not self.installed:
            raise RefusalError(
                f"{self.name} needs {self.module}, which is not installed: "
                f"pip install 'stoic[{self.extra}]'."
            )
        return self.build(space, seed, trials)


# CMA-ES cannot handle categories: they are drawn at random, without a warning a trial.
_CMA: Any = partial(optuna.samplers.CmaEsSampler, warn_independent_sampling=False)
# Its own 50 would be one random generation, and no second one, in the contest's 40 trials.
_NSGA: Any = partial(optuna.samplers.NSGAIISampler, population_size=10)
_GROUPS: Any = partial(optuna.samplers.TPESampler, multivariate=True, group=True)


def _optuna(
    name: str, sampler: Callable[..., BaseSampler], colour: str, module: str | None = None
) -> Contender:
    extra = None if module is None else "contest"
    return Contender(
        name, lambda space, seed, trials: sampler(seed=seed), colour, module=module, extra=extra
    )


_PURSUIT = Contender(
    "relevance pursuit", foreign.relevance_pursuit, YELLOW, module="botorch", extra="botorch",
    numbers_only=True,
)  # fmt: skip
PEERS: dict[str, Contender] = {
    peer.name: peer
    for peer in (
        _optuna("GPSampler", optuna.samplers.GPSampler, BLUE, "torch"),
        _optuna("TPE", optuna.samplers.TPESampler, GREEN),
        _optuna("TPE, groups", _GROUPS, SKY),
        _optuna("CMA-ES", _CMA, PURPLE, "cmaes"),
        _optuna("NSGA-II", _NSGA, SKY),
        _optuna("random", optuna.samplers.RandomSampler, GREY),
        _PURSUIT,
        Contender("SMAC", foreign.smac, ORANGE, module="smac", extra="smac"),
    )
}
FAST = ("GPSampler", "TPE", "CMA-ES", "random")  # these play all seeds
SLOW = ("relevance pursuit", "SMAC")  # these fewer

# The default, with a model of the parameters of all trials alone: others are drawn at random.
SHARED = "shared parameters only"
_SHARED = Contender(
    SHARED,
    lambda space, seed, trials: StoicSampler(seed=seed, search_space=space),
    ORANGE,
    peer=False,
)
_COLOURS = {DEFAULT: VERMILION, "loo_gp_ucb": SKY, "fc_rcgp_ucb": PURPLE, "gp_ucb": BLACK}


def contender(name: str) -> Contender:
    """Find the peer of this name, stoic's default, or the recipe with this text."""
    if name in PEERS:
        return PEERS[name]
    if name == SHARED:
        return _SHARED
    colour = _COLOURS.get(name, BLACK)

    def build(space: Mapping[str, BaseDistribution], seed: int, trials: int) -> BaseSampler:
        return StoicSampler(seed=seed) if name == DEFAULT else StoicSampler(seed=seed, recipe=name)

    return Contender(name, build, colour, peer=False)


def installed(names: Iterable[str]) -> tuple[str, ...]:
    """Select the contenders whose library is installed."""
    return tuple(name for name in names if contender(name).installed)


def report_skipped(names: Iterable[str]) -> None:
    """Print a line for each peer that is left out, with the extra that installs it."""
    for peer in PEERS.values():
        if peer.name not in names and not peer.installed:
            print(
                f"{peer.name} is left out, since {peer.module} is not installed: "
                f"pip install 'stoic[{peer.extra}]'.",
                file=sys.stderr,
            )
