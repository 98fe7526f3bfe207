"""Settings of figures 1 (a) to (e) of [Chowdhury2019]_."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stoic.experiments.heavy_tails.worlds import FILES


@dataclass(frozen=True, slots=True)
class Settings:
    """Experiments of section 6. Trial k has draw k and noise seed k, the same for all methods.

    Alpha and v belong to a world, levels and widths to the recipes with ``constants="practice"``,
    which are the ones that the authors ran.

    Attributes
    ----------
    world:
        Name of the world.
    methods:
        Names; drawn and in the table.
    same_width:
        Names of those whose width is GP-UCB's; in the table alone.
    data:
        Path of the table of a real world; a directory stands for the file in it that has the
        paper's name. None for the tables that come with other packages, and in other worlds.
    trials:
        Independent runs of ``methods``; trial numbers start at ``seed``.
    same_width_trials:
        The same of ``same_width``, at most ``trials``.
    rounds:
        T, which the methods know.
    regulariser:
        lambda, the noise variance of the prior.
    nodes:
        Number of quadrature features per coordinate.
    distortion:
        eps of Nystroem features.
    """

    world: str
    methods: tuple[str, ...]
    same_width: tuple[str, ...]
    data: Path | None = None
    # 20 trials of 2 x 10^4 rounds, lambda = 1, m = 32 and eps = 0.1: section 6
    trials: int = 20
    same_width_trials: int = 10
    rounds: int = 20_000
    seed: int = 0
    regulariser: float = 1.0
    nodes: int = 32
    distortion: float = 0.1

    def __post_init__(self) -> None:
        # --data is for all figures of a command: where there is no table, it is no setting
        if self.world not in FILES:
            object.__setattr__(self, "data", None)
        elif self.data is not None and self.data.is_dir():
            object.__setattr__(self, "data", self.data / FILES[self.world])

    @property
    def seeds(self) -> range:
        """Seeds of the trials of ``methods``."""
        return range(self.seed, self.seed + self.trials)

    def seeds_of(self, method: str) -> range:
        """Seeds of the trials that a method plays."""
        few = method in self.same_width
        return self.seeds[: self.same_width_trials] if few else self.seeds
