"""Contextual balancing: random actions, misspecification of unknown size.

In every round 50 of the 400 points of a grid on the unit square may be chosen, drawn at random. f
is g plus eps times random signs, clipped to [0, 1]; g = 1/2 + h with a function h of the kernel's
space, of known norm, is in [0.1, 0.9], so that g is within eps of f. [Bogunovic2021b]_ has no
experiments; these runs examine Proposition 1.

Learners have the widths of the theorem with a tenth of the enlargement, and regret bounds of a
tenth of what these say. With all of it every bound exceeds the largest possible regret of 10,000
rounds, and balancing is taking turns: a mean of the learners. Taking turns is drawn as well: the
same learners one after the other, each observing its own plays. Balancing has to be better than
that, and than the worst of its learners alone, which is the result of a bad guess of eps.
Differences are paired by trial, and count if they are more than two standard errors.

Here learners hardly differ; in :mod:`~stoic.experiments.misspecification.untested` they do.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from stoic.adversaries import Gaussian
from stoic.balancing import Balanced, build
from stoic.confidence import SelfNormalised, Theory
from stoic.data import Array, Integers
from stoic.domains import Box, Finite
from stoic.environment import Environment
from stoic.experiments import contender, pictures
from stoic.experiments.figure import Cell, Claim, Figure, Table, every, tabulate
from stoic.experiments.statistics import Estimate
from stoic.experiments.trials import Trials, grouped
from stoic.kernels import RBF, Kernel
from stoic.learner import Learner
from stoic.posteriors import information_bounds
from stoic.posteriors.prior import Prior
from stoic.problems.draws import kernel_sum
from stoic.problems.misspecified import Approximated, Signs
from stoic.problems.tabulated import Tabulated
from stoic.promises import Promise
from stoic.recipes import contextual_ec_gp_ucb
from stoic.recipes.base import Balancing

_COLOURS = (contender.VERMILION, contender.ORANGE, contender.PURPLE, contender.BLUE, contender.SKY,
            contender.GREEN, contender.BLACK, contender.GREY)  # fmt: skip
OWN, ALL, TURNS = "balanced", "balanced, told everything", "taking turns"


@dataclass(frozen=True, slots=True)
class World(ABC):
    """Settings of the runs, and what is played.

    Attributes
    ----------
    errors:
        eps, in units of the range of f.
    trials:
        Independent runs for each eps; a trial has the same g, signs, actions and noise for all eps
        and methods.
    noise_sd, regulariser:
        R; and lambda.
    learners:
        M, as the formula gives it for these settings.
    """

    errors: tuple[float, ...]
    trials: int = 10
    rounds: int = 10_000
    seed: int = 0
    noise_sd: float = 0.1
    regulariser: float = 1.0
    learners: int = 3

    @property
    @abstractmethod
    def domain(self) -> Finite:
        """All actions."""

    @property
    @abstractmethod
    def kernel(self) -> Kernel:
        """Kernel of all learners."""

    @property
    @abstractmethod
    def offer(self) -> str:
        """What a round offers, in words."""

    @abstractmethod
    def problem(self, error: float, seed: int) -> Approximated:
        """f of one trial, with the g that it is near."""

    @abstractmethod
    def offered(self, rng: np.random.Generator) -> Integers:
        """Actions of a round."""

    @abstractmethod
    def balancing(self, norm: float, everything: bool) -> Balancing:
        """Learners and their bounds."""

    @property
    def before(self) -> Array:
        """Points with a result before the first round, shape (n, d)."""
        return self.domain.points[:0]

    def master(self, norm: float, everything: bool = False) -> Balanced:
        """Balance the learners."""
        built = build(self.domain, self.balancing(norm, everything))
        assert isinstance(built, Balanced)
        return built

    @property
    def prior(self) -> Prior:
        """Prior of all learners; its mean is the middle of the range."""
        return Prior(self.kernel, self.regulariser, 0.5)

    @property
    def gain(self) -> float:
        """Upper bound on gamma_T."""
        return information_bounds(self.prior, self.domain, self.rounds).upper

    @property
    def methods(self) -> tuple[str, ...]:
        """Balancing in two ways, taking turns, and each learner alone."""
        return (OWN, ALL, TURNS, *self.alone)

    @property
    def alone(self) -> tuple[str, ...]:
        """Each learner without a master."""
        return tuple(f"eps_{i} alone" for i in range(1, self.learners + 1))

    @property
    def panels(self) -> tuple[str, ...]:
        """Panel of each eps."""
        return tuple(f"{error:g}" for error in self.errors)


@dataclass(frozen=True, slots=True)
class Settings(World):
    """Random actions on a grid, see :class:`World`.

    Attributes
    ----------
    actions, side:
        Number of points available in a round, and of points on a side of the grid.
    lengthscale:
        Of the squared exponential kernel.
    """

    errors: tuple[float, ...] = (0.0, 0.05, 0.1, 0.2, 0.4)
    actions: int = 50
    side: int = 20
    lengthscale: float = 0.5

    @property
    def domain(self) -> Finite:
        return Box(np.zeros(2), np.ones(2)).grid(self.side)

    @property
    def kernel(self) -> Kernel:
        return RBF(self.lengthscale)

    @property
    def offer(self) -> str:
        return f"{self.actions} random actions a round"

    def problem(self, error: float, seed: int) -> Approximated:
        grid = self.domain
        h = kernel_sum(grid, self.kernel, seed, terms=30, normalise=True)
        g = Tabulated("g", grid, 0.5 + 0.4 * h.value(grid.points))
        # g is in [0.1, 0.9], so clipping never moves f away from it
        f = np.clip(g.values + error * Signs(seed)(g), 0.0, 1.0)
        # The norm of g less 1/2, the mean of the prior
        return Approximated(Tabulated(f"eps = {error:g}", grid, f), g.values, 0.4 * h.norm)

    def offered(self, rng: np.random.Generator) -> Integers:
        return rng.choice(len(self.domain), self.actions, replace=False)

    def balancing(self, norm: float, everything: bool) -> Balancing:
        # In practice: a tenth of the enlargement, and of the bounds
        # delta / (2 M) of delta = 0.1, as the recipe shares it out with a theory
        return contextual_ec_gp_ucb(
            prior=self.prior,
            confidence=SelfNormalised(norm, self.noise_sd, 0.1 / (2.0 * self.learners)),
            learners=self.learners,
            everything=everything,
            theory=Theory("practice", horizon=self.rounds),
        )(self.domain)


class Row(NamedTuple):
    """One run: a row of the CSV file.

    Attributes
    ----------
    error, norm:
        max |f - g|, and B, the norm of g.
    gain:
        Upper bound on gamma_T.
    regret:
        Sum over the rounds of max f over the actions, less f at the chosen one.
    plays:
        Number of plays of each learner.
    kept:
        Learners that were not dropped.
    wronged:
        Number of learners dropped although their regret had not exceeded its bound.
    """

    panel: str
    method: str
    seed: int
    error: float
    norm: float
    gain: float
    regret: float
    plays: str
    kept: str
    wronged: int


def taking_turns(master: Balanced) -> Balanced:
    """Play the same learners in turn: trivial regret bounds, so that none can be dropped."""
    nothing = [Promise(0.0, rate=1.0)] * len(master.learners)
    return Balanced(master.learners, nothing, delta=master.delta)


def run(settings: World, cell: Cell) -> list[Row]:
    """Play one method on one trial."""
    problem = settings.problem(float(cell.panel), cell.seed)
    master = settings.master(problem.norm, everything=cell.method == ALL)
    if cell.method == TURNS:
        master = taking_turns(master)
    player: Balanced | Learner = master
    if cell.method in settings.alone:
        chosen = master.learners[settings.alone.index(cell.method)]
        assert isinstance(chosen, Learner)
        player = chosen
    environment = Environment(problem, Gaussian(settings.noise_sd), seed=cell.seed)
    # A stream of its own: the same actions for all methods and all eps
    drawn = np.random.default_rng([cell.seed, 50])
    values, regret, wronged = problem.truth.values, np.zeros(settings.learners), 0
    for x in settings.before:
        outcome = environment.step(x)
        player.tell(outcome.x, outcome.observed)
    for _ in range(settings.rounds):
        given = settings.offered(drawn)
        choice = player.ask(among=given)
        who = int(str(choice.notes.get("learner", 0)))  # a learner alone leaves no note
        assert choice.arm is not None
        regret[who] += values[given].max() - values[choice.arm]
        before = master.kept
        outcome = environment.step(choice.x)
        player.tell(outcome.x, outcome.observed, choice=choice)
        # Dropped now: had its true regret, which no learner knows, stayed within its bound?
        for i in set(before) - set(master.kept):
            wronged += bool(regret[i] <= master.bounds[i](int(master.plays[i])))
    plays, kept = " ".join(map(str, master.plays)), " ".join(str(i + 1) for i in master.kept)
    total = float(regret.sum())
    return [Row(*cell, problem.error, problem.norm, settings.gain, total, plays, kept, wronged)]


Regrets = dict[tuple[str, str], Array]


def regrets(rows: Sequence[Row]) -> Regrets:
    """Regret of all trials by panel and method, in the order of their seeds."""
    return {key: trials.final("regret") for key, trials in grouped(rows).items()}


def by_mean(settings: World, found: Regrets, panel: str) -> list[str]:
    """Learners without a master, the one with the least mean regret first."""
    return sorted(settings.alone, key=lambda name: float(found[panel, name].mean()))


def relative(settings: World, found: Regrets, key: tuple[str, str]) -> Array:
    """Regret over the mean regret of the best learner alone, of all trials; nan if that is 0."""
    best = by_mean(settings, found, key[0])[0]
    return found[key] / (float(found[key[0], best].mean()) or math.nan)


def plot(settings: World, rows: Sequence[Row]) -> pictures.Picture:
    """Plot mean regret and its ratio to the best learner alone over eps, with standard errors."""
    picture = pictures.blank(10.5, 3.6)
    left, right = picture.subplots(1, 2)
    found, eps = regrets(rows), np.array(settings.errors)
    # eps_i = 2^(1-i) / sqrt(gamma_T) (section 4); the span of rewards is 1
    width = 2.0 / math.sqrt(settings.gain)
    for k, (method, colour) in enumerate(zip(settings.methods, cycle(_COLOURS), strict=False)):
        own = f"$\\epsilon_{k - 2}$ = {width * 0.5 ** (k - 2):.2g} alone"
        look: dict[str, Any] = {"color": colour, "marker": "o", "ms": 3, "lw": 1.5}
        look["fmt"] = "-" if k < 2 else ":" if method == TURNS else "--"
        for axes, of in ((left, found.__getitem__), (right, partial(relative, settings, found))):
            points = [Estimate.of(of((panel, method))) for panel in settings.panels]
            means, errors = [point.mean for point in points], [point.error for point in points]
            label = own if k > 2 else method
            axes.errorbar(eps + 0.002 * (k - 2.5), means, errors, label=label, **look)
    right.axhline(1.0, color="0.5", lw=0.8, ls=":")
    right.set_yscale("log")
    right.yaxis.set_major_formatter("{x:g}")
    right.yaxis.set_minor_formatter(lambda x, _: f"{x:g}" if f"{x:g}"[0] in "25" else "")
    left.set_ylim(bottom=0.0)
    left.set_ylabel(f"regret after {settings.rounds} rounds")
    right.set_ylabel("relative to the best learner alone")
    for axes in (left, right):
        axes.set_xlabel("eps, the error of the model")
        axes.grid(alpha=0.3, lw=0.5)
    pictures.legend(picture, [left], fontsize=8)
    said = f"{settings.offer}; mean of {settings.trials} trials and its standard error"
    picture.suptitle(said, fontsize=9)
    return picture


def table(settings: World, rows: Sequence[Row]) -> Table:
    """Regret of every method for every eps, and the plays of each learner."""
    found = regrets(rows)

    def plays(trials: Trials[Row]) -> str:
        mean = np.mean([[int(n) for n in row.plays.split()] for row in trials.ends], axis=0)
        return " ".join(f"{n:.0f}" for n in mean)

    def shared(entry: Callable[[Trials[Row]], str]) -> Callable[[Trials[Row]], str]:
        return lambda trials: entry(trials) if trials.ends[0].method in (OWN, ALL, TURNS) else ""

    def ratio(trials: Trials[Row]) -> str:
        return f"{relative(settings, found, trials.ends[0][:2]).mean():.2f}"

    return tabulate(
        "Mean over the trials ± one standard error; plays of the learners, and drops in all.",
        ("eps", "method"),
        (
            ("regret", lambda trials: str(Estimate.of(trials.final("regret")))),
            ("over best alone", ratio),
            ("plays", shared(plays)),
            ("dropped", shared(lambda trials: str(dropped(settings, trials.ends)))),
        ),
        grouped(rows),
    )


def dropped(settings: World, rows: Sequence[Row]) -> int:
    """Count the learners that were dropped."""
    return sum(settings.learners - len(row.kept.split()) for row in rows)


def claims(settings: World, rows: Sequence[Row]) -> tuple[Claim, ...]:
    """Proposition 1, with numbers for its constants."""
    found, own = regrets(rows), (OWN, ALL)
    return (
        *(_better(settings, found, p, m, w) for m in own for p in settings.panels for w in (0, 1)),
        _no_false_drop(settings, rows),
        *(_linear(settings, found, rows[0].gain, method) for method in own),
        _robust_wins(settings, found),
    )


def _better(settings: World, found: Regrets, panel: str, method: str, worst: int) -> Claim:
    """Claim of less regret, by more than two standard errors of the paired differences."""
    other, name = TURNS, TURNS
    if worst:
        other = max(settings.alone, key=lambda each: float(found[panel, each].mean()))
        name = f"the worst of its {settings.learners} learners alone"
    ours, theirs = found[panel, method], found[panel, other]
    less = Estimate.of(theirs - ours)
    measured = {
        "mean": float(ours.mean()),
        "other": float(theirs.mean()),
        "less_by": less.mean,
        "standard_error": less.error,
    }
    if worst:
        measured["which"] = settings.alone.index(other) + 1.0
    return Claim(
        f"eps = {panel}, not told: {method} has less mean regret than {name}, by more than two "
        "standard errors.",
        less.mean > 2.0 * less.error,
        measured,
    )


def _no_false_drop(settings: World, rows: Sequence[Row]) -> Claim:
    # Given everything, a bound may fail without the learner being at fault: see ``Balanced``
    own = [row for row in rows if row.method == OWN]
    numbers = {
        "runs": float(len(own)),
        "wronged": float(sum(row.wronged for row in own)),
        "dropped": float(dropped(settings, own)),
    }
    sentence = "No learner is dropped that had kept its promise, in any run."
    return Claim(sentence, numbers["wronged"] == 0.0, numbers)


def _linear(settings: World, found: Regrets, gain: float, method: str) -> Claim:
    """(R(eps) - R(0)) / (eps T sqrt(gamma_T)), at most 1 for every eps."""
    clean = found[settings.panels[0], method].mean()  # eps = 0
    shares = {}
    for error, panel in list(zip(settings.errors, settings.panels, strict=True))[1:]:
        excess = found[panel, method].mean() - clean
        shares[f"eps {panel}"] = float(excess / (error * settings.rounds * math.sqrt(gain)))
    return Claim(
        f"{method}: an error of eps costs at most eps T sqrt(gamma_T), with 1 as the constant.",
        all(share <= 1.0 for share in shares.values()),
        shares,
        "Bogunovic2021b, Proposition 1",
    )


def _robust_wins(settings: World, found: Regrets) -> Claim:
    """Claim that larger enlargements are better where the error is larger."""
    best = {
        f"eps {panel}": settings.alone.index(by_mean(settings, found, panel)[0]) + 1.0
        for panel in settings.panels
    }
    each = list(best.values())
    return Claim(
        "Of the learners alone, the one with the least eps_i is best where eps = 0, and another "
        "one where eps is largest.",
        each[0] == settings.learners and each[-1] < settings.learners,
        best,
    )


CELLS = every(lambda settings: settings.panels)
FIGURE = Figure(
    "misspecification/contextual",
    "Balancing over errors of the model that nobody is told, against each learner alone",
    Settings(), CELLS, run, plot, table, claims,
)  # fmt: skip
