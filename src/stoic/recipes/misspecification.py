"""Recipes for a misspecified model, wrong by at most eps everywhere [Bogunovic2021b]_."""

from __future__ import annotations

from stoic.confidence import PRACTICE, Confidence, Fixed, Misspecified, Schedule, Theory
from stoic.defences import Trust
from stoic.domains import Domain, Finite
from stoic.models import GaussianProcess
from stoic.policies import UCB, Elimination, Policy, RareSwitching
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


@recipe
def ec_gp_ucb(
    domain: Domain,
    *,
    prior: Prior | None = None,
    error: float = 0.0,
    theory: Theory = PRACTICE,
    confidence: Confidence | None = None,
    scale: Scale = mean_and_sd,
    policy: Policy | None = None,
) -> Parts:
    """EC-GP-UCB: GP-UCB with a width enlarged for misspecification.

    Algorithm 1 of [Bogunovic2021b]_. With ``error=0`` it is GP-UCB with the same width, where no
    noise is reported with a result.

    Parameters
    ----------
    prior, policy:
        As in every recipe. Without a prior, fitted as in :func:`~stoic.recipes.gp_ucb`.
    error:
        eps, in units of the results: the largest distance of f from a function of norm B.
    theory:
        B, sigma and delta of eq. (13), which is ``SelfNormalised(norm)``, with the whole
        enlargement of eq. (15). In practice the schedule of :func:`~stoic.recipes.gp_ucb`, enlarged
        by a tenth of eps sqrt(t - 1) / sqrt(noise).
    confidence:
        beta_t, the width without enlargement, instead of the default.
    scale:
        Standardisation of the results where hyperparameters are fitted.

    Guarantee
    ---------
    With a given prior and a ``Theory``: regret O(B sqrt(gamma_T T) + sqrt((ln(1 / delta)
    + gamma_T) gamma_T T) + eps T sqrt(gamma_T)) with probability 1 - delta, if a function of norm
    at most B is within eps of f everywhere ([Bogunovic2021b]_, Theorem 1). No method avoids a
    regret of order eps T. A noise reported with a result is not used, since Lemma 2 needs at
    least the prior's. In practice mode and with fitted hyperparameters: none. The paper has no
    experiments, so the constants of practice are ours.
    """
    check_prior(domain, prior)
    theory.only("ec_gp_ucb", width=OF_WIDTH, confidence=confidence)
    width = Misspecified(
        confidence or self_normalised(theory) or Schedule(), error, 1.0 if theory.proved else 0.1
    )
    model = GaussianProcess(
        prior or family(domain), Trust(reported_noise=False), fitting(prior, scale)
    )
    return Parts(model, width, policy or UCB())


@recipe
def phased_gp_us(
    domain: Finite,
    *,
    prior: Prior,
    theory: Theory = PRACTICE,
    confidence: Confidence | None = None,
) -> Parts:
    """Phased GP Uncertainty Sampling: Algorithm 2 of [Bogunovic2021b]_.

    It need not know the error of the model. Episodes of 1, 2, 4, ... plays start from the prior
    and query the largest standard deviation; then points that cannot be the best are eliminated, as
    if the model were right. An episode does not depend on its results, so ``ask_batch(n)`` suggests
    it in batches of any size. Stop after T plays, in the middle of an episode if need be.

    Parameters
    ----------
    prior:
        Hyperparameters are not fitted: the plan of an episode may not depend on results.
    theory:
        B, sigma and delta of eq. (13), delta shared among the episodes:
        ``SelfNormalised(norm, restarts=True)``. In practice width 4, as [Bogunovic2022]_ ran a
        method of the same kind.
    confidence:
        beta, the width of an episode, instead of the default.

    Guarantee
    ---------
    With a ``Theory``: the regret of :func:`ec_gp_ucb` up to logarithms of T, with
    probability 1 - delta, for whatever eps is true ([Bogunovic2021b]_, Theorem 2). Eq. (13) holds
    for one episode with probability 1 - delta; the text takes it for all of them, here episode e
    has 6 delta / (pi e)^2 of delta. The best point may be eliminated where eps is not 0: the points
    that are kept are near-optimal. In practice mode: none.

    Raises
    ------
    ValueError
        If the domain is not finite, or there is no prior.
    """
    check_finite(domain, "phased_gp_us")
    check_given(prior, "phased_gp_us")
    check_prior(domain, prior)
    theory.only("phased_gp_us", width=OF_WIDTH, confidence=confidence)
    default = self_normalised(theory, restarts=True) or Fixed(4.0)
    design = RareSwitching(growth=1.0, share=0.0, first=1)  # m_1 = 1, a new sigma after each point
    model = GaussianProcess(prior, Trust(reported_noise=False))
    return Parts(model, confidence or default, Elimination(design))
