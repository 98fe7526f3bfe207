"""Recipes against corruption with a budget [Bogunovic2020]_, [Bogunovic2022]_."""

from __future__ import annotations

import math
from typing import Literal

from stoic.confidence import (
    PRACTICE,
    Confidence,
    CorruptionBudget,
    EpochBudget,
    Fixed,
    NonAdaptive,
    Schedule,
    Theory,
)
from stoic.confidence.reduction import ReducedBudget
from stoic.defences import Trust
from stoic.domains import Domain, Finite
from stoic.models import GaussianProcess
from stoic.models.linear import LeastSquares
from stoic.policies import UCB, Elimination, Policy, RareSwitching
from stoic.policies.near_optimal import NearOptimal
from stoic.posteriors.newton import NewtonBasis
from stoic.posteriors.prior import Prior
from stoic.posteriors.scales import Scale, mean_and_sd
from stoic.recipes.base import Parts, recipe
from stoic.recipes.parts import (
    OF_WIDTH,
    check_finite,
    check_given,
    check_prior,
    family,
    fitting,
    self_normalised,
)
from stoic.theory import plan

_HORIZON = 50_000  # T, unless it is given
_PROVED = Theory()


def square_root_of_log(scale: float = 0.5) -> Schedule:
    """Schedule scale sqrt(ln t), the slowly growing beta_t that [Bogunovic2022]_ ran."""
    # A Schedule is scale sqrt(2 ln t)
    return Schedule(scale / math.sqrt(2.0), offset=0.0, least=0.0)


@recipe
def rgp_ucb(
    domain: Domain,
    *,
    prior: Prior | None = None,
    budget: float = 0.0,
    theory: Theory = PRACTICE,
    confidence: Confidence | None = None,
    scale: Scale = mean_and_sd,
    policy: Policy | None = None,
) -> Parts:
    """RGP-UCB [Bogunovic2020]_: GP-UCB with a width enlarged by a corruption budget.

    Parameters
    ----------
    prior, policy:
        As in every recipe. Without a prior, fitted as in :func:`~stoic.recipes.gp_ucb`.
    budget:
        C, the sum of all absolute corruptions, in units of the results.
    theory:
        B, R and delta of ``SelfNormalised(norm)`` + C / sqrt(noise). In practice
        sqrt(ln t) / 2 + 0.1 C / sqrt(noise), as run in [Bogunovic2022]_.
    confidence:
        beta_t, the width without enlargement, instead of the default.
    scale:
        Standardisation of the results where hyperparameters are fitted.

    Guarantee
    ---------
    With a given prior and a ``Theory``: regret O((beta_T + C / sqrt(noise)) sqrt(T
    gamma_T)) with probability 1 - delta, so C multiplies sqrt(T gamma_T) ([Bogunovic2020]_,
    Theorem 3). In practice mode and with fitted hyperparameters: none.
    """
    check_prior(domain, prior)
    theory.only("rgp_ucb", width=OF_WIDTH, confidence=confidence)
    default = self_normalised(theory) or square_root_of_log()
    width = CorruptionBudget(confidence or default, budget, 1.0 if theory.proved else 0.1)
    # C / sqrt(noise) supposes the prior's noise for every result
    model = GaussianProcess(
        prior or family(domain), Trust(reported_noise=False), fitting(prior, scale)
    )
    return Parts(model, width, policy or UCB())


@recipe
def rgp_pe(
    domain: Finite,
    *,
    prior: Prior,
    budget: float | Literal["unknown"] = 0.0,
    theory: Theory = PRACTICE,
    confidence: Confidence | None = None,
    growth: float = 2.0,
    share: float | None = None,
) -> Parts:
    """RGP-PE, robust phased elimination: Algorithm 1 of [Bogunovic2022]_.

    ``ask_batch(n)`` suggests the plays of an epoch in batches of any size, see
    :class:`~stoic.policies.elimination.Elimination`. Stop after T plays, in the middle of an epoch
    if need be.

    Parameters
    ----------
    prior:
        Its kernel is at most 1 on the diagonal in the theory. Hyperparameters are not fitted: the
        plan of an epoch may not depend on results. A noise reported with a result is not used.
    budget:
        C, the sum of all absolute corruptions, in units of f. ``"unknown"``: the largest C that
        costs no more than a constant factor (section 3.4), sqrt(T) / gamma_T, or sqrt(T / gamma_T)
        with ``"tight"`` constants.
    theory:
        B >= ||f - prior mean||_k, R and delta of Corollary 5 with the enlargement of Lemma 2,
        truncation ln(growth) / (2 gamma_T), or a ``"tight"``, smaller enlargement: see
        :class:`~stoic.confidence.corruption.EpochBudget`. In practice 4 + 0.1 C / sqrt(u) for an
        epoch of u plays, truncation 1/2 (section 4). The horizon T, by default 50,000, is that of
        the upper bound on gamma_T, which is computed where it is needed: seconds for a thousand
        arms.
    confidence:
        beta_h, the width without enlargement, instead of the default.
    growth, share:
        eta and psi; a share of 0 does not truncate.

    Guarantee
    ---------
    With a ``Theory`` and ||f||_k <= ``norm``: regret O*(sqrt(T gamma_T) +
    C gamma_T^(3/2)) with probability 1 - delta, so C is added and not multiplied (Theorem 3 and
    Corollary 5). With ``"tight"`` constants the same proof gives C gamma_T, see
    :mod:`stoic.theory`. In practice mode: none.

    Raises
    ------
    ValueError
        If the domain is not finite, or a number is out of range.
    """
    check_finite(domain, "rgp_pe")
    check_given(prior, "rgp_pe")
    check_prior(domain, prior)
    planned = ("horizon",) if share is None or budget == "unknown" else ()
    theory.only(
        "rgp_pe", "tight", *planned, practice=planned if budget == "unknown" else (),
        width=OF_WIDTH, confidence=confidence,
    )  # fmt: skip
    if share is None and not theory.proved:
        share = 0.5
    if share is None or budget == "unknown":
        known = plan(prior, domain, theory.horizon or _HORIZON, eta=growth)
        share = known.psi if share is None else share
        if budget == "unknown":
            tight = theory.constants == "tight"
            budget = known.tight_unknown_budget if tight else known.unknown_budget
    default: Confidence = Fixed(4.0)
    if theory.proved:
        default = NonAdaptive(theory.norm, len(domain), theory.noise_sd, theory.delta)
    width = EpochBudget(confidence or default, budget, theory.constants)
    model = GaussianProcess(prior, Trust(reported_noise=False))
    return Parts(model, width, Elimination(RareSwitching(growth, share)))


@recipe
def linear_reduction(
    domain: Finite,
    *,
    prior: Prior,
    budget: float = 0.0,
    theory: Theory = _PROVED,
    error: float | None = None,
    share: float | None = None,
) -> Parts:
    """Robust phased elimination of a linear bandit in a Newton basis: App. E of [Bogunovic2022]_.

    Phased elimination as in :func:`rgp_pe`, with least squares on features that span the kernel's
    space up to ``error``, and epochs played by a near-optimal design of the arms that are left.

    Parameters
    ----------
    prior:
        Its kernel makes the basis; its mean is subtracted.
    budget:
        C, the sum of all absolute corruptions, in units of f.
    theory:
        B >= ||f - prior mean||_k, the sub-Gaussian constant of the noise, delta, and the form of
        :class:`~stoic.confidence.reduction.ReducedBudget`. The horizon T, by default 50,000, is for
        the choice of ``error`` alone.
    error:
        Delta, in units of f: the largest approximation error of the basis. ``None`` takes
        norm sqrt(kappa / T), kappa being the largest prior variance.
    share:
        alpha, the least share of an arm in an epoch; ``None`` takes 1 / m_0.

    Guarantee
    ---------
    If the norm, the noise and the corruptions are as assumed and all results are finite, a
    maximiser is never eliminated with probability 1 - delta (:class:`ReducedBudget`), and with D
    functions in the basis the regret is O*(Delta T sqrt(D) + sqrt(D T ln(|X|/delta)) + C D^1.5),
    eq. (115); with ``"tight"`` constants the last term is C D. For Delta = B / sqrt(T) this is

    - sqrt(T (ln T)^d) + C (ln T)^(3d/2) for the squared exponential kernel, (116);
    - sqrt(T^((d+2nu)/(2nu))) + C T^(3d/(4nu)) for a Matern kernel, (117). For C constant and
      nu < d, Delta = B T^(-nu/(d+nu)) is better: sqrt(T^((2d+nu)/(d+nu))) + C T^(3d/(2(d+nu))),
      which is (118) without its misprint. See :mod:`stoic.theory`.

    An epoch starts with m_0 = 4 D (ln ln D + 18) plays and C adds 2 C sqrt(2 D) to the first
    width, halved in each further epoch, so this is a method for very many rounds. The text keeps
    the best arm of the linear model; here Delta is added to the width, and the best arm of f is
    kept.

    Raises
    ------
    ValueError
        If the domain is not finite, or a number is out of range.
    """
    check_finite(domain, "linear_reduction")
    check_given(prior, "linear_reduction")
    check_prior(domain, prior)
    theory.only("linear_reduction", "norm", "noise_sd", "delta", "horizon", "tight")
    norm, form = theory.norm, theory.constants
    if form == "practice":
        raise ValueError("linear_reduction has no constants of practice: take 'theory' or 'tight'.")
    if not 0.0 < norm < math.inf:
        raise ValueError(f"A bound on the norm is positive, got {norm!r}.")
    if error is None:
        largest = float(prior.kernel.diagonal(domain.points).max())
        error = norm * math.sqrt(largest / (theory.horizon or _HORIZON))
    basis = NewtonBasis.of(prior.kernel, domain, error / norm)  # e = Delta / B of Algorithm 2
    design = NearOptimal(basis, share)
    width = ReducedBudget(
        dim=len(basis.arms),
        support=design.support,
        share=design.least,
        error=norm * basis.error,  # the error that the basis reached, which is less
        budget=budget,
        arms=len(domain),
        noise_sd=math.sqrt(prior.noise) if theory.noise_sd is None else theory.noise_sd,
        delta=theory.delta,
        form=form,
    )
    return Parts(LeastSquares(prior, basis), width, Elimination(design))
