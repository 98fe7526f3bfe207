"""The default method."""

from __future__ import annotations

from dataclasses import replace

from stoic.confidence import Fixed
from stoic.domains import Domain
from stoic.models import LeaveOneOutGP
from stoic.models.window import Bounds
from stoic.policies import Policy, VerifiedImprovement
from stoic.policies.recommended import Recommended
from stoic.posteriors.fitting import (
    BROAD_NOISE_PRIOR,
    REST_PRIOR,
    Fitting,
    FixedHyperparameters,
    marginal_likelihood,
)
from stoic.posteriors.prior import Prior
from stoic.recipes.base import Parts, recipe
from stoic.recipes.parts import check_prior, family
from stoic.sources import Source, informed


@recipe
def robust(
    domain: Domain,
    *,
    prior: Prior | None = None,
    policy: Policy | None = None,
    sources: tuple[Source, ...] = (),
) -> Parts:
    """Default method: expected improvement on a leave-one-out mixture, with verification.

    Each result is tested against the prediction from all others
    (:class:`~stoic.models.LeaveOneOutGP`), and competing outlier hypotheses are kept with their
    odds. Replicates that agree are always trusted. The search
    (:class:`~stoic.policies.verified.VerifiedImprovement`) is greedy, and evaluates again an
    incumbent that may be an outlier and a rejected result that would be the best, before it builds
    on them. Reports integrate the hyperparameters out (:attr:`~stoic.Learner.estimate`).

    Where results span orders of magnitude, poor ones are compressed before they are modelled
    (:mod:`stoic.models.rescaling`). Then :attr:`~stoic.Learner.posterior` is in units of
    :attr:`~stoic.Learner.modelled`, and :meth:`~stoic.Learner.predict` in those of the results.

    It differs from :func:`~stoic.recipes.outliers.loo_gp_ucb` in the acquisition, in a broad prior
    of the noise, and in an outlier penalty of 2 nats instead of 3, which halved the loss where one
    result in ten was 1e6 too bad when it was chosen, and changed others little.

    Parameters
    ----------
    prior, policy:
        As in every recipe; the policy is ``VerifiedImprovement()`` unless it is given.
    sources:
        Earlier studies, as functions on the domain: a linear model in them is part of the prior
        (:class:`~stoic.sources.Informed`), and their best inputs are queried first.

    Guarantee
    ---------
    No theorem about the regret. For the model that of :class:`~stoic.models.LeaveOneOutGP` for a
    fixed point: an outlier of any size moves the mean of a hypothesis that may reject it by a
    bounded number of standard deviations. All else is measured: the documentation's contest.
    Beyond 256 observations every other choice is one in a trust region
    (:class:`~stoic.policies.trust_region.LocalSearch`), and the posterior of all observations is an
    approximation, at a bounded cost a choice; what is exact then, and what is reported about the
    best, is in :class:`~stoic.models.LeaveOneOutGP`.
    """
    check_prior(domain, prior)
    if prior and sources:
        raise ValueError(
            "A prior fixes the hyperparameters, and how far to trust a source is one of them: give "
            "a prior or sources."
        )
    fitting = (
        FixedHyperparameters()
        if prior
        else Fitting(marginal_likelihood, noise=BROAD_NOISE_PRIOR, step=None)
    )
    base, policy = prior or family(domain), policy or VerifiedImprovement()
    if sources:
        base = replace(base, kernel=informed(base.kernel, sources))
        policy = Recommended(policy, tuple(source.best for source in sources))
        if isinstance(fitting, Fitting):
            fitting = replace(fitting, amplitude=REST_PRIOR)
    model = LeaveOneOutGP(
        base,
        fitting,
        outlier_penalty=2.0,
        replicates=True,
        extreme=10.0,
        bounds=Bounds(),
        compresses=True,
    )
    return Parts(model, Fixed(2.0), policy)  # for bounds: the default policy has no width
