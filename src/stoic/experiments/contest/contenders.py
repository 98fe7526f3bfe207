"""Contenders: widely used optimizers, and every recipe of stoic by its text.

All are Optuna samplers in the same loop. A peer's library is an extra, imported when it is used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from optuna import samplers
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler

from stoic.experiments import contender as colours
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
    extra: str = "contest"
    numbers_only: bool = False

    def sampler(self, space: Mapping[str, BaseDistribution], seed: int, trials: int) -> BaseSampler:
        """Build a new sampler; ``RefusalError`` names the extra if its library is missing."""
        if not self.installed:
            raise RefusalError(
                f"{self.name} needs {self.module}, which is not installed: {self.install}"
            )
        return self.build(space, seed, trials)

    @property
    def install(self) -> str:
        """Command that installs its module."""
        return f"pip install 'stoic[{self.extra}]'."


def _seeded(
    name: str,
    sampler: Callable[..., BaseSampler],
    colour: str,
    module: str | None = None,
    **of: Any,
) -> Contender:
    return Contender(
        name, lambda space, seed, trials: sampler(seed=seed, **of), colour, module=module
    )


PEERS: dict[str, Contender] = {
    peer.name: peer
    for peer in (
        _seeded("GPSampler", samplers.GPSampler, colours.BLUE, "torch"),
        _seeded("TPE", samplers.TPESampler, colours.GREEN),
        _seeded("TPE, groups", samplers.TPESampler, colours.SKY, multivariate=True, group=True),
        # It cannot handle categories: they are drawn at random, without a warning a trial.
        _seeded(
            "CMA-ES",
            samplers.CmaEsSampler,
            colours.PURPLE,
            "cmaes",
            warn_independent_sampling=False,
        ),
        # Its own 50 would be one random generation, and no second one, in the contest's 40 trials.
        _seeded("NSGA-II", samplers.NSGAIISampler, colours.SKY, population_size=10),
        _seeded("random", samplers.RandomSampler, colours.GREY),
        Contender(
            "relevance pursuit",
            foreign.relevance_pursuit,
            colours.YELLOW,
            module="botorch",
            extra="botorch",
            numbers_only=True,
        ),
        Contender("SMAC", foreign.smac, colours.ORANGE, module="smac", extra="smac"),
    )
}
FAST = ("GPSampler", "TPE", "CMA-ES", "random")  # these play all seeds
SLOW = ("relevance pursuit", "SMAC")  # these fewer

# The default, with a model of the parameters of all trials alone: others are drawn at random.
SHARED = "shared parameters only"
_COLOURS = {
    DEFAULT: colours.VERMILION, "loo_gp_ucb": colours.SKY, "fc_rcgp_ucb": colours.PURPLE,
    SHARED: colours.ORANGE,
}  # fmt: skip


def contender(name: str) -> Contender:
    """Find the peer of this name, stoic's default, or the recipe with this text."""
    if name in PEERS:
        return PEERS[name]

    def build(space: Mapping[str, BaseDistribution], seed: int, trials: int) -> BaseSampler:
        if name == SHARED:
            return StoicSampler(seed=seed, search_space=space)
        return StoicSampler(seed=seed) if name == DEFAULT else StoicSampler(seed=seed, recipe=name)

    return Contender(name, build, _COLOURS.get(name, colours.BLACK), peer=False)


def installed(names: Iterable[str]) -> tuple[str, ...]:
    """Select the contenders whose library is installed."""
    return tuple(name for name in names if contender(name).installed)


def report_skipped(names: Iterable[str]) -> None:
    """Print a line for each peer that is left out, with the extra that installs it."""
    for peer in PEERS.values():
        if peer.name not in names and not peer.installed:
            why = f"since {peer.module} is not installed: {peer.install}"
            print(f"{peer.name} is left out, {why}", file=sys.stderr)
