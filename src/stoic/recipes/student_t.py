"""Recipes against outliers by Student's t: the baselines of [Ezzerg2026]_."""

from __future__ import annotations

from stoic.confidence import Confidence, Schedule
from stoic.defences import Diagnostics
from stoic.domains import Domain
from stoic.models import GaussianProcess, StudentTProcess
from stoic.policies import UCB, Policy
from stoic.posteriors.prior import Prior
from stoic.posteriors.scales import Scale, mean_and_sd, median_and_mad_in_space
from stoic.posteriors.student_t import StudentTLikelihood
from stoic.posteriors.student_t_noise import StudentTNoise
from stoic.recipes.base import Parts, recipe
from stoic.recipes.parts import check_prior, family, fitting


@recipe
def tp_ucb(
    domain: Domain,
    *,
    prior: Prior | None = None,
    freedom: float = 3.0,
    confidence: Confidence | None = None,
    scale: Scale = mean_and_sd,
    policy: Policy | None = None,
) -> Parts:
    """UCB on a Student-t process [Shah2014]_, as [Ezzerg2026]_ compares with.

    Its mean is that of :func:`~stoic.recipes.plain.gp_ucb` with the same hyperparameters; without a
    prior they maximise the Student-t likelihood instead.

    Parameters
    ----------
    prior, policy:
        As in every recipe.
    freedom:
        nu > 2 of the process.
    confidence:
        The width, which multiplies the deviation of the process.
    scale:
        Standardisation of the results, by default plainly, as is common practice.

    Guarantee
    ---------
    None for the regret: [Shah2014]_ gives the exact posterior, no bound. None against outliers: one
    result of size c moves the posterior mean by a multiple of c.
    """
    check_prior(domain, prior)
    fitted = fitting(prior, scale, StudentTLikelihood(freedom))
    model = StudentTProcess(prior or family(domain), fitting=fitted, freedom=freedom)
    return Parts(model, confidence or Schedule(), policy or UCB())


@recipe
def diagnostics_gp_ucb(
    domain: Domain,
    *,
    prior: Prior | None = None,
    freedom: float = 4.0,
    level: float = 0.05,
    confidence: Confidence | None = None,
    scale: Scale = median_and_mad_in_space,
    policy: Policy | None = None,
) -> Parts:
    """GP-UCB after a test for outliers [MartinezCantin2018]_, as [Ezzerg2026]_ ran it.

    Before every choice a Gaussian process with Student-t noise is fitted to all results, those in
    its tails are left out, and an ordinary process with hyperparameters of its own is conditioned
    on the rest.

    Parameters
    ----------
    prior, policy:
        As in every recipe.
    freedom, level:
        nu of the noise, and the level of the two-sided test.
    confidence:
        The width, instead of the default.
    scale:
        Standardisation of the results. All observations count there, so that it is a robust scale
        by default.

    Guarantee
    ---------
    None. A result that is left out has no influence, however large it is; surprising inliers are
    left out as well.
    """
    check_prior(domain, prior)
    chosen = prior or family(domain)
    fitted = fitting(prior, scale)
    defence = Diagnostics(StudentTNoise(chosen, freedom, fitted), level)
    model = GaussianProcess(chosen, defence, fitted)
    return Parts(model, confidence or Schedule(), policy or UCB())
