"""Balancing over errors of the model where they matter: a combination that nobody tried.

Two treatments can be given alone or together, and their effects are modelled as additive. Results
of each alone are known before the first round; a round offers neither or both. Alone each is worse
than neither by 0.1, so an additive model has both together at 0.2 less. Together they are better by
4 eps than that: eps is the distance of f from the additive functions.

A learner that assumes less than this is certain of what it never tried, and stays with neither. One
that assumes more tries both again and again, where nothing is wrong. Theory says where learners
differ like this: where T is much larger than gamma_T^2, as with few features and many rounds, since
an error costs eps T sqrt(gamma_T) and learning gamma_T sqrt(T). Their widths are those of the
theorem, with the whole enlargement. Regret bounds are a tenth of what these say, as in practice:
of the whole ones the least is 0.35 a round after 30,000 rounds, and three are 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from stoic.confidence import Theory
from stoic.data import Array, Integers
from stoic.domains import Finite
from stoic.experiments.figure import Figure
from stoic.experiments.misspecification.contextual import CELLS, World, claims, plot, run, table
from stoic.kernels import Kernel, Linear
from stoic.problems.misspecified import Approximated
from stoic.problems.tabulated import Tabulated
from stoic.recipes import contextual_ec_gp_ucb
from stoic.recipes.balanced import WidthPromise
from stoic.recipes.base import Balancing

NEITHER, FIRST, SECOND, BOTH = range(4)
SHARE, COMPARISON = 0.1, 0.5  # of contextual_ec_gp_ucb in practice


@dataclass(frozen=True, slots=True)
class Settings(World):
    """Settings of the runs, see :class:`~stoic.experiments.misspecification.contextual.World`.

    Attributes
    ----------
    known:
        Results of each treatment alone before the first round.
    """

    errors: tuple[float, ...] = (0.0, 0.1, 0.15)
    rounds: int = 30_000
    noise_sd: float = 0.05
    learners: int = 5
    known: int = 300

    @property
    def domain(self) -> Finite:
        # Features: an intercept and either treatment
        return Finite(np.array([[1.0, i, j] for j in (0.0, 1.0) for i in (0.0, 1.0)]))

    @property
    def kernel(self) -> Kernel:
        return Linear()  # additive effects

    @property
    def offer(self) -> str:
        return f"neither or both, {self.known} results of each alone"

    def problem(self, error: float, seed: int) -> Approximated:
        f = np.array([0.5, 0.4, 0.4, 0.3 + 4.0 * error])
        # The nearest additive function: off by eps everywhere, with alternating signs
        g = f - error * np.array([1.0, -1.0, -1.0, 1.0])
        # Weights: the intercept less 1/2, the prior's mean, and the two effects
        norm = float(np.linalg.norm([g[NEITHER] - 0.5, *(g[[FIRST, SECOND]] - g[NEITHER])]))
        return Approximated(Tabulated(f"eps = {error:g}", self.domain, f), g, norm)

    def offered(self, rng: np.random.Generator) -> Integers:
        return np.array([NEITHER, BOTH])

    @property
    def before(self) -> Array:
        return self.domain.points[[FIRST, SECOND]].repeat(self.known, axis=0)

    def balancing(self, norm: float, everything: bool) -> Balancing:
        # Widths of the theorem; bounds and comparisons as in practice
        theory = Theory("theory", norm=norm, noise_sd=self.noise_sd, horizon=self.rounds)
        made = contextual_ec_gp_ucb(
            prior=self.prior,
            theory=theory,
            learners=self.learners,
            c=COMPARISON,
            everything=everything,
        )(self.domain)
        bounds = [bound for bound in made.bounds if isinstance(bound, WidthPromise)]
        return replace(made, bounds=tuple(replace(bound, share=SHARE) for bound in bounds))


FIGURE = Figure(
    "misspecification/untested",
    "Balancing over errors of an additive model, where two treatments were never given together",
    Settings(), CELLS, run, plot, table, claims,
)  # fmt: skip
