"""Regret against eps: the cost of a wrong model, with eps given and not.

f = g + eps m, with g of a known norm in the space of the kernel and m in [-1, 1]. All widths are
those of the theorems. Perturbations:

- the *bump* is the obvious perturbation; the model averages it away;
- the *needle* is the worst that we know: one point stands out by 2 eps from its surroundings;
- *random signs* are not chosen adversarially.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from stoic.data import Array
from stoic.domains import Finite
from stoic.experiments import pictures
from stoic.experiments.claims import LINEAR, less
from stoic.experiments.figure import OURS, Cell, Claim, Figure, Table, every
from stoic.experiments.misspecification.algorithms import (
    ALGORITHMS,
    EC,
    EC_LITTLE,
    EC_MUCH,
    GP,
    PHASED,
    RGP,
    THEOREMS,
    Algorithm,
    Assumed,
)
from stoic.experiments.misspecification.trials import (
    Row,
    average,
    exponent,
    late,
    measured,
    paired,
    play,
    slope,
    text,
)
from stoic.experiments.statistics import Estimate
from stoic.experiments.trials import Groups, grouped, names
from stoic.kernels import RBF
from stoic.posteriors.information import information_bounds
from stoic.posteriors.prior import Prior
from stoic.problems.draws import kernel_sum
from stoic.problems.misspecified import Bump, Needle, Perturbation, Signs, perturbed

BUMP, NEEDLE, SIGNS = "bump", "needle", "random signs"


@dataclass(frozen=True, slots=True)
class Settings:
    """f = g + eps m on a line, with g drawn from the space of a squared exponential kernel.

    Attributes
    ----------
    errors:
        eps, in units of max |g|; the first is 0.
    perturbations:
        Kinds of m, a panel each.
    points:
        N, evenly spaced on [0, 1].
    lengthscale:
        Lengthscale of the kernel; half of it and all of it are the reach of the perturbations.
    terms:
        Number of kernels that g is a sum of, divided by max |g|.
    noise_sd:
        sigma; lambda = sigma^2.
    """

    trials: int = 20
    rounds: int = 10_000
    seed: int = 0
    errors: tuple[float, ...] = (0.0, 0.05, 0.1, 0.2, 0.4)
    perturbations: tuple[str, ...] = (BUMP, NEEDLE, SIGNS)
    methods: tuple[str, ...] = names(GP, EC, EC_LITTLE, EC_MUCH, PHASED, RGP)
    points: int = 100
    lengthscale: float = 0.2
    terms: int = 30
    noise_sd: float = 0.1

    @property
    def prior(self) -> Prior:
        """Prior of all methods."""
        return Prior(RBF(self.lengthscale), self.noise_sd**2)

    @property
    def domain(self) -> Finite:
        """Points of the domain."""
        return Finite(np.linspace(0.0, 1.0, self.points))


def perturbation(settings: Settings, name: str, seed: int) -> Perturbation:
    """Perturbation of this name."""
    makers: dict[str, Callable[[], Perturbation]] = {
        BUMP: lambda: Bump(settings.lengthscale),
        NEEDLE: lambda: Needle(settings.lengthscale),
        SIGNS: lambda: Signs(seed),
    }
    return makers[name]()


cells = every(lambda settings: settings.perturbations)


def run(settings: Settings, cell: Cell) -> list[Row]:
    """Play one method on one draw with one perturbation, a row for each eps."""
    prior, domain = settings.prior, settings.domain
    near = kernel_sum(domain, prior.kernel, cell.seed, terms=settings.terms, normalise=True)
    m = perturbation(settings, cell.panel, cell.seed)
    rows = []
    for error in settings.errors:
        problem = perturbed(near, error, m)
        assumed = Assumed(prior, near.norm, problem.error, settings.rounds)
        algorithm = ALGORITHMS[cell.method]
        # The requested eps, not the computed one: 0.05 again, and not 0.05 but for rounding.
        row = play(cell, problem, algorithm, assumed, settings.noise_sd)
        rows.append(row._replace(error=error))
    return rows


ByError = dict[float, Groups[Row]]


def by_error(settings: Settings, rows: Sequence[Row]) -> ByError:
    """Trials of each eps, by perturbation and method."""
    return {e: grouped(row for row in rows if row.error == e) for e in settings.errors}


def averages(groups: ByError, panel: str, method: str) -> Array:
    """R_T / T by trial and eps, shape (trials, number of eps)."""
    return np.stack([average(each[panel, method]) for each in groups.values()], axis=1)


@cache
def gain(settings: Settings) -> float:
    """Upper bound on gamma_T."""
    return information_bounds(settings.prior, settings.domain, settings.rounds).upper


def plot(settings: Settings, rows: Sequence[Row]) -> pictures.Picture:
    """Plot mean R_T / T over eps, with a band of one standard error, and two reference lines."""
    panels = settings.perturbations
    picture = pictures.blank(3.1 * len(panels) + 2.6, 3.6)
    groups, errors = by_error(settings, rows), np.array(settings.errors)
    for k, panel in enumerate(panels):
        axes = picture.add_subplot(1, len(panels), k + 1)
        for method in settings.methods:
            values = averages(groups, panel, method)
            pictures.curve(axes, errors, values, ALGORITHMS[method])
        # f(x*) - f(x) <= 2 eps at the maximiser x of g
        axes.plot(errors, 2.0 * errors, color="0.6", lw=0.8, ls="-.", label="2 eps")
        # The limits of the curves: sqrt(gamma_T) is near 7, and its line would flatten them
        top = axes.get_ylim()[1]
        root = math.sqrt(gain(settings)) * errors
        axes.plot(errors, root, color="0.6", lw=0.8, ls="--", label="eps sqrt(gamma_T)")
        axes.set_ylim(0.0, top)
        axes.set_xlim(errors[0], errors[-1])
        axes.set_title(panel, fontsize=10)
        axes.set_xlabel("eps (units of max |g|)")
        axes.grid(alpha=0.3, lw=0.5)
        if k == 0:
            axes.set_ylabel(f"$R_T / T$ at T = {settings.rounds:,}")
            pictures.legend(picture, [axes], fontsize=8)
    return picture


def table(settings: Settings, rows: Sequence[Row]) -> Table:
    """R_T / T for each eps, and its growth in eps."""
    groups, errors = by_error(settings, rows), np.array(settings.errors)
    lines = []
    for panel in settings.perturbations:
        for method in settings.methods:
            values = averages(groups, panel, method)
            means = [str(Estimate.of(column)) for column in values.T]
            growth = (text(slope(errors, values)), text(exponent(errors, values)))
            lines.append((panel, method, *means, *growth))
    caption = (
        f"R_T / T at T = {settings.rounds}, in units of max |g|, mean ± one standard error; slope "
        "in eps, and the exponent p of R_T(eps) - R_T(0) ~ eps^p, with 95 % bootstrap intervals. "
        f"gamma_T <= {gain(settings):.3g}."
    )
    headings = ("perturbation", "method", *(f"eps = {e:g}" for e in errors), "slope", "exponent")
    return Table(caption, headings, tuple(lines))


def claims(settings: Settings, rows: Sequence[Row]) -> tuple[Claim, ...]:
    """Claims that the paper proves, that its argument suggests, and our own."""
    groups = by_error(settings, rows)
    found = [without_error(settings, groups)]
    for panel in settings.perturbations:
        for name in settings.methods:
            found += growth(settings, groups, panel, ALGORITHMS[name])
        found += failure(settings, groups, panel)
        found += known_errors(settings, groups, panel)
    return tuple(found)


def without_error(settings: Settings, groups: ByError) -> Claim:
    """Claim that EC-GP-UCB is GP-UCB if eps = 0."""
    clean = groups[0.0]
    largest = max(
        float(np.abs(average(clean[panel, m.name]) - average(clean[panel, GP.name])).max())
        for panel in settings.perturbations
        for m in (EC, EC_LITTLE, EC_MUCH)
    )
    return Claim(
        "With eps = 0, EC-GP-UCB has the regret of GP-UCB, to the last digit.",
        largest == 0.0,
        {"largest_difference_per_round": largest},
    )


def growth(settings: Settings, groups: ByError, panel: str, method: Algorithm) -> list[Claim]:
    """Growth no faster than linear in eps, and below eps T sqrt(gamma_T).

    The paper proves a multiple of the latter for EC-GP-UCB, given eps, and for Phased GP-US.
    """
    errors = np.array(settings.errors)
    values = averages(groups, panel, method.name)
    p, rise = exponent(errors, values), slope(errors, values)
    # (number of eps - 1,): the cost of a round, in units of eps
    excess = (values - values[:, :1]).mean(axis=0)[1:] / errors[1:]
    root = math.sqrt(gain(settings))
    source = THEOREMS.get(method.name, "")
    numbers = {
        f"{name}{end}": value
        for name, interval in (("exponent", p), ("slope", rise))
        for end, value in zip(("", "_low", "_high"), interval, strict=True)
    }
    return [
        Claim(
            f"{panel}: what eps costs {method.name} grows no faster than linearly in eps: the "
            "exponent is not above 1 by more than its interval.",
            p.value <= 1.0 or p.lower <= 1.0,
            numbers,
            OURS,
        ),
        Claim(
            f"{panel}: eps costs {method.name} no more than eps T sqrt(gamma_T), for every eps.",
            bool((excess <= root).all()),
            {"largest_cost_over_eps_T": float(excess.max()), "root_of_gamma": root},
            source,
        ),
    ]


def failure(settings: Settings, groups: ByError, panel: str) -> list[Claim]:
    """Failure of GP-UCB with the width of its theorem."""
    last = settings.errors[-1]
    plain, enlarged = (groups[last][panel, method.name] for method in (GP, EC))
    return [
        Claim(
            f"{panel}, eps = {last:g}: the regret of GP-UCB is linear, at least {LINEAR:g} of it "
            "in the second half.",
            late(plain) >= LINEAR,
            measured(plain),
        ),
        Claim(
            f"{panel}, eps = {last:g}: EC-GP-UCB has less regret than GP-UCB.",
            float((average(enlarged) - average(plain)).mean()) < 0.0,
            paired(enlarged, plain),
        ),
        Claim(
            f"Not in the paper: {panel}: GP-UCB loses at most 2 eps a round more than with eps = 0,"
            " for every eps.",
            *_at_most(settings, groups, panel, GP, 2.0),
        ),
    ]


def _at_most(
    settings: Settings, groups: ByError, panel: str, method: Algorithm, factor: float
) -> tuple[bool, dict[str, float]]:
    values = averages(groups, panel, method.name)
    excess = (values - values[:, :1]).mean(axis=0)[1:] / np.array(settings.errors[1:])
    in_trials = (values[:, 1:] - values[:, :1]) / np.array(settings.errors[1:])
    return bool((excess <= factor).all()), {
        "largest_cost_over_eps_T": float(excess.max()),
        "largest_in_a_trial": float(in_trials.max()),
    }


def known_errors(settings: Settings, groups: ByError, panel: str) -> list[Claim]:
    """Cost of a wrong eps, of none, and of a budget instead of it."""
    last = settings.errors[-1]

    def below(ours: Algorithm, theirs: Algorithm, start: str) -> Claim:
        numbers = paired(*(groups[last][panel, one.name] for one in (ours, theirs)))
        sentence = f"{start}{panel}, eps = {last:g}: {ours.name} has less regret than "
        return less(f"{sentence}{theirs.name}.", numbers)

    own = "Not in the paper: "
    return [
        # RGP-UCB enlarges by eps T / sqrt(noise) from the start, EC-GP-UCB by eps sqrt(t / noise)
        below(EC, RGP, ""),
        below(EC, EC_LITTLE, own),
        below(EC, EC_MUCH, own),
        below(PHASED, EC, own),
        below(PHASED, GP, own),
    ]


FIGURE = Figure(
    "misspecification/regret-vs-eps",
    "Regret against the error of the model",
    Settings(), cells, run, plot, table, claims,
)  # fmt: skip
