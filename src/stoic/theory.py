"""Regret bounds under a corruption budget, as orders and with constants.

`table` is Table 1 of [Bogunovic2022]_ with the reduction of its Appendix E and a tighter bound
for RGP-PE, as orders: constants and logarithms that do not depend on the dimension are left out.
`plan` is for one finite domain: gamma_T, the parameters that follow from it, and Theorem 3 with
its constants.

Notation: T rounds, d dimensions, C the budget sum_t |c_t|, B >= ||f||_k the norm,
gamma = gamma_T the information gain, u_min the plays of the least played arm of an epoch.

The tight bound
---------------
Lemma 2 of [Bogunovic2022]_ allows corruptions to move the averaged mean by C sqrt(u) / (u_min
lambda) standard deviations, where u is the length of the epoch. Let c_i be the mean corruption of
the arm of play i. The shift is phi' A^-1 Phi' c with A = Phi' Phi + lambda, so by Cauchy-Schwarz
at most ||phi||_A^-1 ||c||, where ||phi||_A^-1 = std / sqrt(lambda) by (16), and ||c||^2 is the sum
over arms of u(x) (C(x) / u(x))^2 <= C^2 / u_min. So the shift is at most

    C / sqrt(lambda u_min)    standard deviations.

It is less by the factor sqrt(u / (lambda u_min)); it is the tight form of the width of RGP-PE
(:class:`stoic.confidence.EpochBudget`). With u_min >= l_h psi and psi = ln(eta) / (2
gamma), the proof of Theorem 3 then gives C gamma in place of C gamma^1.5. For the linear kernel
this is C d, the lower bound; for the Matern kernels it meets the lower bound where both of its
terms are equal, at C = sqrt(T / gamma).

Where the text errs
-------------------
- (10) and (50) divide by lambda, and their proof gives sqrt(lambda), since (51) is a square. With
  lambda > 1, (10) is false: one arm with k = 1, played 10 times with lambda = 10, is moved by
  0.071 C standard deviations, and (10) allows 0.032 C.
- Table 1, as we transcribed it, has the regret of RGP-PE with the squared exponential kernel as
  sqrt(T) (ln T)^d: look at the paper before you quote this one. (13) gives sqrt(T gamma), which is
  sqrt(T) (ln T)^(d/2), and so do the other kernels.
- (93) bounds the regret of a play by B; f is in [-B, B], so it is 2 B.
- (84) counts one switch too many: the distinct arms of an epoch are at most 1 + 2 gamma / ln(eta).
- Corollary 5 takes a bound for each side as one for both: its logarithm needs 2 |X|.
- (118) is printed with d + 2 nu. Equating the first and the third term of (115) with D =
  Delta^(-d/nu) gives Delta = T^(-nu/(d+nu)), D = T^(d/(d+nu)) and the exponents (2d + nu)/(d + nu)
  and 3d/(2(d + nu)), as the remarks and the footnote after it have them.
- (117) is sublinear when both its terms are: nu > 3d/4 (its first term alone needs nu > d/2).
  (118) is when nu > d/2; its first term always is. RGP-PE is when nu > d/4.
- Section 3.3 calls the reduction always worse under the Matern kernels. That holds while C is
  constant. A Delta that grows with C makes the reduction sublinear for all C = o(T) if nu > d/2,
  and better than (13) from C = T^(nu/(2 nu + d)) on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from stoic.domains import Finite
from stoic.posteriors import InformationBounds, Prior, information_bounds
from stoic.refusal import RefusalError

Record = dict[str, str | float | bool | None]

KERNELS = ("linear", "se", "matern")


@dataclass(frozen=True, slots=True)
class Power:
    """Term T^rounds (ln T)^logs d^dim C^budget of a bound."""

    rounds: float = 0.0
    logs: float = 0.0
    dim: float = 0.0
    budget: float = 0.0

    def __mul__(self, other: Power) -> Power:
        return Power(
            self.rounds + other.rounds,
            self.logs + other.logs,
            self.dim + other.dim,
            self.budget + other.budget,
        )

    def __pow__(self, p: float) -> Power:
        return Power(p * self.rounds, p * self.logs, p * self.dim, p * self.budget)

    def __truediv__(self, other: Power) -> Power:
        return self * other**-1.0

    def value(self, rounds: int, dim: int, budget: float = 1.0) -> float:
        """Value of the term, possibly infinite: for a large T, or C = 0 with a negative power."""
        if budget == 0.0 and self.budget != 0.0:
            return 0.0 if self.budget > 0.0 else math.inf
        # As a sum: a factor may overflow where the product does not
        logarithm = (
            self.rounds * math.log(rounds)
            + self.logs * math.log(math.log(rounds))
            + self.dim * math.log(dim)
            + (self.budget * math.log(budget) if self.budget else 0.0)
        )
        try:
            return math.exp(logarithm)
        except OverflowError:
            return math.inf

    def __str__(self) -> str:
        bases = (("C", self.budget), ("T", self.rounds), ("(ln T)", self.logs), ("d", self.dim))
        # Exponents are sums of fractions: those that cancel leave rounding
        factors = [_raised(base, exponent) for base, exponent in bases if abs(exponent) > 1e-12]
        return " ".join(factors) or "1"


def _raised(base: str, exponent: float) -> str:
    if abs(exponent - 0.5) < 1e-12:
        return f"sqrt{base}" if base.startswith("(") else f"sqrt({base})"
    bare = base[1:-1] if base.startswith("(") else base
    return bare if abs(exponent - 1.0) < 1e-12 else f"{base}^{exponent:.3g}"


T, C = Power(rounds=1.0), Power(budget=1.0)


@dataclass(frozen=True, slots=True)
class Bound:
    """Bound on the regret, the sum of two terms.

    Attributes
    ----------
    method, source:
        The method, and the source of the bound.
    clean:
        The term without corruption.
    corrupted:
        The term that corruption adds.
    """

    method: str
    source: str
    clean: Power
    corrupted: Power

    def __str__(self) -> str:
        return f"{self.clean} + {self.corrupted}"

    def value(self, rounds: int, dim: int, budget: float) -> float:
        """Order as a number; constants left out."""
        terms = (self.clean, self.corrupted)
        return sum(term.value(rounds, dim, budget) for term in terms)

    def exponent(self, growth: float = 0.0) -> float:
        """Power of T when C = T^growth, logarithms left out."""
        return max(term.rounds + growth * term.budget for term in (self.clean, self.corrupted))

    @property
    def sublinear(self) -> bool:
        """True if it grows more slowly than T while C does not grow."""
        return self.exponent() < 1.0

    @property
    def tolerance(self) -> float:
        """Least g for which C = T^g makes it linear; nan if it is linear without C growing."""
        if not self.sublinear:
            return math.nan
        # T^rounds C^budget is T at C = T^((1 - rounds) / budget)
        terms = [term for term in (self.clean, self.corrupted) if term.budget > 0.0]
        return min([1.0, *((1.0 - term.rounds) / term.budget for term in terms)])

    @property
    def free(self) -> Power:
        """The C at which both terms are equal: below, corruption costs a constant factor.

        Section 3.4: a learner that assumes this C need not know the true one as long as it is
        less, and its regret is of order ``clean``.
        """
        # Of the terms without C: slope C^q = without C^p, solved for C
        slope = Power(self.corrupted.rounds, self.corrupted.logs, self.corrupted.dim)
        without = Power(self.clean.rounds, self.clean.logs, self.clean.dim)
        return (without / slope) ** (1.0 / (self.corrupted.budget - self.clean.budget))


@dataclass(frozen=True, slots=True)
class Family:
    """Kernel family: all of a kernel that the rates depend on.

    Parameters
    ----------
    kernel:
        One of `KERNELS`.
    dim:
        Dimensions d of the domain.
    nu:
        Smoothness of a Matern kernel, positive; ``None`` for the others.
    """

    kernel: str
    dim: int
    nu: float | None = None

    def __post_init__(self) -> None:
        if self.kernel not in KERNELS:
            raise RefusalError(f"The kernel is one of {', '.join(KERNELS)}, got {self.kernel!r}.")
        if self.dim < 1:
            raise RefusalError(f"A domain has at least 1 dimension, got {self.dim}.")
        if self.kernel != "matern" and self.nu is not None:
            raise RefusalError(f"Only a matern kernel has a nu: leave it out for {self.kernel}.")
        if self.kernel == "matern" and (
            self.nu is None or not 0.0 < self.nu < math.inf  # not for nan
        ):
            raise RefusalError(
                f"A matern kernel needs its smoothness nu > 0, such as 2.5: got {self.nu}."
            )

    @property
    def gamma(self) -> Power:
        """Order of the information gain gamma_T (section 3.3)."""
        if self.kernel == "linear":
            return Power(dim=1.0)  # times ln T, which does not depend on d
        if self.nu is None:
            return Power(logs=float(self.dim))
        return Power(rounds=self.dim / (2.0 * self.nu + self.dim))

    @property
    def lower(self) -> Bound:
        """Lower bound for all methods: Table 1."""
        d = float(self.dim)
        if self.kernel == "linear":
            clean, corrupted = T**0.5 * Power(dim=0.5), C * Power(dim=1.0)
        elif self.nu is None:
            # sqrt(T (ln T)^(d/2)): the root halves the exponent of ln T
            clean, corrupted = T**0.5 * Power(logs=d / 4.0), C * Power(logs=d / 2.0)
        else:
            clean = T ** ((self.nu + d) / (2.0 * self.nu + d))
            corrupted = (C**self.nu * T**d) ** (1.0 / (d + self.nu))
        return Bound("lower bound", "Table 1", clean, corrupted)

    @property
    def reductions(self) -> tuple[Bound, ...]:
        """Appendix E with each of its choices of Delta; without loss for a linear kernel."""
        method = "linear reduction"
        if self.nu is None:
            # D is d, or (ln T)^d at Delta = T^-1/2: the orders of gamma_T
            source = "Bogunovic2021" if self.kernel == "linear" else "(116)"
            return (Bound(method, source, *_reduced(self.gamma)),)
        # D = Delta^(-d/nu) with Delta = T^-1/2; and with Delta T = C D, so (C/T)^(nu/(d+nu))
        fine = T ** (self.dim / (2.0 * self.nu))
        coarse = (T / C) ** (self.dim / (self.dim + self.nu))
        return (
            Bound(method, "(117)", *_reduced(fine)),
            Bound(method, "(118) corrected", *_reduced(coarse)),
        )


def _reduced(D: Power) -> tuple[Power, Power]:
    return (D * T) ** 0.5, C * D**1.5  # (115) without the term that Delta makes equal to one


def table(family: Family, rounds: int, budget: float | None) -> list[Bound]:
    """Table of all bounds for a kernel; of the two reductions the smaller one at this T and C.

    [Bogunovic2022]_ is RGP-PE, [Bogunovic2020]_ RGP-UCB, [Bogunovic2021]_ the linear bandit that
    Appendix E reduces to. The bounds are those of a finite domain, (13): on a continuous one the
    clean term is that of RGP-UCB, unless f is Lipschitz continuous. (118) is taken with C in Delta;
    for constant C it is as printed, but for the misprint.

    Parameters
    ----------
    rounds:
        T >= 3, so that ln T > 1.
    budget:
        C; ``None`` if it is not known: then a choice of Delta cannot depend on it.
    """
    check_rounds(rounds)
    check_budget(budget)
    gamma, root = family.gamma, T**0.5
    # Without a budget there is one choice only, which is the smallest at any C
    at = 1.0 if budget is None else budget
    choices = family.reductions if budget is not None else family.reductions[:1]
    return [
        family.lower,
        Bound("RGP-UCB", "Bogunovic2020", root * gamma, C * (T * gamma) ** 0.5),
        Bound("RGP-PE", "(13)", root * gamma**0.5, C * gamma**1.5),
        Bound("RGP-PE, tight", "stoic.theory", root * gamma**0.5, C * gamma),
        min(choices, key=lambda bound: bound.value(rounds, family.dim, at)),
    ]


def records(family: Family, rounds: int, budget: float | None, norm: float = 1.0) -> list[Record]:
    """Rows of `table` as plain values, for printing.

    ``order`` is the clean term alone if the budget is not known: it holds as long as the true C is
    at most ``free``. ``trivial`` says that the number is not below B T, which any learner attains
    up to a factor; constants are left out of both, so it is a hint about sizes and no theorem.
    """
    if not 0.0 < norm < math.inf:
        raise RefusalError(f"A bound on the norm is positive, got {norm}.")
    rows: list[Record] = []
    for bound in table(family, rounds, budget):
        value = bound.value(rounds, family.dim, 0.0 if budget is None else budget)
        rows.append(
            {
                "method": bound.method,
                "source": bound.source,
                "order": str(bound.clean if budget is None else bound),
                "value": value,
                "trivial": value >= norm * rounds,
                "sublinear": bound.sublinear,
                "tolerance": bound.tolerance if bound.sublinear else None,
                "free": str(bound.free),
                "free_value": bound.free.value(rounds, family.dim),
            }
        )
    return rows


def check_rounds(rounds: int) -> None:
    """Refuse a horizon for which ln T is not above 1."""
    if rounds < 3:
        raise RefusalError(f"The orders are for at least 3 rounds, got {rounds}.")


def check_budget(budget: float | None) -> None:
    """Refuse a budget that is negative or not finite."""
    if budget is not None and not 0.0 <= budget < math.inf:
        raise RefusalError(f"A budget is a number that is not negative, or unknown: got {budget}.")


@dataclass(frozen=True, eq=False, slots=True)
class Plan:
    """Parameters and bounds of RGP-PE that follow from gamma_T on a finite domain, for one prior.

    Attributes
    ----------
    prior, arms, rounds, eta:
        The setting; lambda is the prior's noise variance.
    kappa:
        Largest prior variance. The text has 1; its 2 lambda + 1 is 2 lambda + kappa here.
    gamma:
        Bounds on gamma_T from both sides. All others use the upper one, which is the safe one.
    psi:
        Truncation parameter ln(eta) / (2 gamma_T) of Theorem 3, at most 1.
    unknown_budget:
        The C to assume if it is not known, sqrt(T) / gamma_T (section 3.4).
    tight_unknown_budget:
        sqrt(T / gamma_T), with the tight width.
    distinct:
        Largest number of distinct arms that an epoch plays.
    """

    prior: Prior
    arms: int
    rounds: int
    eta: float
    kappa: float
    gamma: InformationBounds

    @property
    def psi(self) -> float:
        return min(1.0, math.log(self.eta) / (2.0 * self.gamma.upper))

    @property
    def unknown_budget(self) -> float:
        return math.sqrt(self.rounds) / self.gamma.upper

    @property
    def tight_unknown_budget(self) -> float:
        return math.sqrt(self.rounds / self.gamma.upper)

    @property
    def distinct(self) -> int:
        switches = math.floor(2.0 * self.gamma.upper / math.log(self.eta))  # (85)
        return min(1 + switches, self.arms)

    def regret(
        self,
        budget: float,
        *,
        norm: float = 1.0,
        noise_sd: float | None = None,
        delta: float = 0.1,
        tight: bool = True,
    ) -> float:
        """Regret bound of Theorem 3 with constants, by Corollary 5 and the proof up to (101).

        Parameters
        ----------
        budget:
            C, both assumed and true.
        norm:
            B >= ||f||_k.
        noise_sd:
            sigma, the sub-Gaussian constant of the noise; ``None`` takes the prior's.
        delta:
            Failure probability.
        tight:
            The form of :class:`~stoic.confidence.EpochBudget` that the method runs with: True for
            the width C / sqrt(lambda l_h psi), False for that of ``"theory"``, C sqrt(u_h) /
            (l_h psi min(lambda, sqrt(lambda))), since an arm is eliminated no earlier than its
            width allows.
        """
        noise, eta, psi = self.prior.noise, self.eta, self.psi
        sd = math.sqrt(noise) if noise_sd is None else noise_sd
        epochs = math.ceil(math.log2(self.rounds / 2.0 + 1.0))  # begun; l_h sum to 2^(H+1) - 2
        # Of the last epoch, whose beta is the largest: (98)
        delta_h = 6.0 * delta / (epochs * math.pi) ** 2
        beta = norm + sd / math.sqrt(noise) * math.sqrt(2.0 * math.log(2.0 * self.arms / delta_h))
        stretch = 2.0 + psi * self.distinct  # u_h / l_h, Lemma 11
        widest = eta * (2.0 * noise + self.kappa) * self.gamma.upper  # l_h std^2 <= it, Lemma 13
        enlarged = budget / math.sqrt(noise * psi)  # times 1 / sqrt(l_h)
        # (97): u_h is at most stretch l_h
        if not tight:
            enlarged = budget * math.sqrt(stretch) / (psi * min(noise, math.sqrt(noise)))
        # One epoch of (100)
        later = 8.0 * stretch * math.sqrt(widest) * (beta * math.sqrt(self.rounds) + enlarged)
        # (93), with 2 B for B, and sqrt(kappa) since |f| <= B sqrt(k(x, x)), (95)
        first = 2.0 * norm * math.sqrt(self.kappa) * 2.0 * stretch  # l_0 = 2
        return first + (epochs - 1) * later


def plan(prior: Prior, domain: Finite, rounds: int, *, eta: float = 2.0) -> Plan:
    """Compute gamma_T of a domain and the parameters of RGP-PE [Bogunovic2022]_ from it.

    Parameters
    ----------
    prior, domain, rounds:
        Kernel and noise variance, the arms, and the horizon T.
    eta:
        Switching parameter of the phases, above 1.

    Returns
    -------
    Plan
        The maximal information gain, and lengths and regret bounds as functions of the budget.

    Raises
    ------
    RefusalError
        For an eta that is not above 1, or a horizon that is no positive number.
    """
    check_rounds(rounds)
    if not 1.0 < eta < math.inf:
        raise RefusalError(f"The switching parameter eta is above 1, got {eta}.")
    gamma = information_bounds(prior, domain, rounds)
    kappa = float(prior.kernel.diagonal(domain.points).max())
    return Plan(prior, len(domain), rounds, eta, kappa, gamma)
