"""Simulation environment: a problem, its noise, its adversaries. State is here and in `Learner`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from stoic.adversaries.base import Adversary, Round, same
from stoic.adversaries.budgets import Ledger
from stoic.adversaries.inputs import Move, Perturbation, Stay
from stoic.adversaries.noise import Gaussian, Noise
from stoic.confidence.base import Band
from stoic.data import Array, Booleans, Outcome
from stoic.domains import Finite, as_points
from stoic.problems.base import Problem

_BLOCK = 1024  # draws at once: amortises the call, and costs nothing where rounds are few


class Environment:
    """Environment that answers queries: f(x) plus the round's noise plus corruption.

    The executed point may differ from the chosen one. Initial design, its noise, the noise of the
    rounds, the adversary and the perturbation have separate streams spawned from ``seed``. The
    noise of round t is the t-th draw of its stream whatever was queried before, so methods run with
    the same seed are compared on the same draws.

    Attributes
    ----------
    problem:
        The objective; its domain decides which points may be queried.
    noise:
        Drawn once per round.
    adversary:
        Attack and budget. The budget is enforced here, for every attack.
    perturbation:
        The move of a chosen point before it is executed.
    round:
        Number of rounds played.
    spent:
        The budget that the adversary has spent.
    """

    def __init__(
        self,
        problem: Problem,
        noise: Noise | None = None,
        adversary: Adversary | None = None,
        seed: int = 0,
        *,
        perturbation: Perturbation | None = None,
    ) -> None:
        self.problem = problem
        self.noise: Noise = Gaussian(0.0) if noise is None else noise
        self.adversary = Adversary() if adversary is None else adversary
        self.perturbation = Stay() if perturbation is None else perturbation
        if not hasattr(self.noise, "apply") or isinstance(noise, type):
            raise TypeError(f"noise is a distribution such as Gaussian(0.1), got {noise!r}.")
        if not isinstance(self.adversary, Adversary):
            raise TypeError(f"adversary is an Adversary(attack, budget), got {adversary!r}.")
        if not isinstance(self.perturbation, Perturbation):
            raise TypeError(f"perturbation is a move, as RandomMove(0.1), got {perturbation!r}.")
        for part in (self.adversary.attack, self.perturbation):
            if part.needs_finite and not problem.domain.finite:
                raise ValueError(
                    f"{type(part).__name__} needs a finite domain, got {problem.domain!r}: use the "
                    "problem on a grid."
                )
        self.round = 0
        self.spent = Ledger()
        # A stream may be added at the end alone: in between it would change all after it
        design, design_noise, noise_stream, adversary_stream, moves = (
            np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(5)
        )
        self._design = design
        self._design_draws = self._draws(design_noise)
        self._round_draws = self._draws(noise_stream)
        self._adversary_rng = adversary_stream
        self._moves_rng = moves
        self._moves = not isinstance(self.perturbation, Stay)
        self._heights = np.empty(0)
        self._values: list[tuple[Array, float, int | None]] = []
        if isinstance(problem.domain, Finite):
            points = problem.domain.points
            self._heights = problem.value(points)
            rows = zip(points, self._heights.tolist(), range(len(points)), strict=True)
            self._values = list(rows)
        self._known = {known[0].tobytes(): known for known in self._values}

    def step(
        self,
        x: Array,
        active: Callable[[], Booleans] | None = None,
        band: Callable[[], Band] | None = None,
    ) -> Outcome:
        """Play one round.

        Parameters
        ----------
        x:
            The chosen point, shape (d,).
        active:
            ``learner.active``, for adversaries that know what the learner has ruled out; by default
            nothing is.
        band:
            ``learner.band``, for perturbations that know the learner's confidence band.

        Raises
        ------
        ValueError
            Unless ``x`` is a point of the domain, and if the perturbation needs a band and there is
            none.
        """
        executed, value, arm = self._evaluate(x)
        if self._moves:
            executed, value, arm = self._evaluate(self._moved(executed, band))
        self.round += 1
        observed = self.noise.apply(value, next(self._round_draws), arm)
        attack, budget = self.adversary.attack, self.adversary.budget
        if budget.exhausted(self.spent):
            return Outcome(executed, value, observed)
        seen = active or self._nothing_ruled_out
        wanted = attack.rewrite(
            Round(executed, arm, value, observed, self.round, self._adversary_rng, self.spent, seen)
        )
        if same(wanted, observed):
            return Outcome(executed, value, observed)
        reported = budget.allow(wanted, observed, self.round, self.spent)
        if same(reported, observed):
            return Outcome(executed, value, observed)
        self.spent.record(observed, reported)
        return Outcome(executed, value, reported, corrupted=True)

    def initial(self, design: int | Array) -> list[Outcome]:
        """Evaluate an initial design, with noise but no adversary; it does not count as rounds.

        Parameters
        ----------
        design:
            Points of the domain, shape (n, d), or the number of points to draw (scrambled Sobol
            points of a box, rows without repetition of a finite domain). Every method run with
            the same seed has the same points and the same noise.
        """
        domain = self.problem.domain
        if isinstance(design, int | np.integer):
            if design < 0:
                raise ValueError(f"A number of initial points is at least 0, got {design}.")
            points = domain.spread(design, self._design)
        else:
            points = as_points(design, domain.dim)
        outcomes = []
        for x in points:
            executed, value, arm = self._evaluate(x)
            observed = self.noise.apply(value, next(self._design_draws), arm)
            outcomes.append(Outcome(executed, value, observed))
        return outcomes

    def _moved(self, x: Array, band: Callable[[], Band] | None) -> Array:
        """Point to which the perturbation moves a point of the domain."""
        perturbation = self.perturbation
        if band is None and perturbation.needs_band:
            raise ValueError(
                f"{type(perturbation).__name__} needs the learner's band: call step(x, "
                "band=learner.band)."
            )
        # It is counted after the move
        t = self.round + 1
        seen = Move(
            x, self.problem.domain, t, self._moves_rng, self._heights.copy, band or _no_band
        )
        return perturbation.move(seen)

    def _evaluate(self, x: Array) -> tuple[Array, float, int | None]:
        """Evaluate f: the executed point (d,), a copy or a read-only row, f, and its row number."""
        known = self._known.get(x.tobytes())
        if known is not None:  # the rows of a finite domain: the hot path
            return known
        executed = as_points(x, self.problem.domain.dim)
        if len(executed) != 1:
            raise ValueError(f"A round plays one point, got {len(executed)}.")
        arms = self.problem.domain.locate(executed)
        if arms is not None:  # a row written differently, as integers or with -0.0
            return self._values[int(arms[0])]
        return executed[0], float(self.problem.value(executed)[0]), None

    def _nothing_ruled_out(self) -> Booleans:
        return np.ones(len(self._values), dtype=np.bool_)

    def _draws(self, rng: np.random.Generator) -> Iterator[float]:
        while True:
            yield from self.noise.draw(rng, _BLOCK).tolist()


def _no_band() -> Band:
    raise ValueError("A perturbation that looks at the band has to declare needs_band = True.")
