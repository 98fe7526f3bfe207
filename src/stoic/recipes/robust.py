"""The default method."""

from __future__ import annotations

from stoic.default import default_parts
from stoic.domains import Domain
from stoic.learner import Learner
from stoic.posteriors.prior import Prior
from stoic.recipes.parts import Seed, after_design, check_prior


def robust(
    domain: Domain, prior: Prior | None = None, *, initial: int = 0, seed: Seed = None
) -> Learner:
    """Default method: expected improvement on a leave-one-out mixture, with verification.

    Each result is tested against the prediction from all others
    (:class:`~stoic.defences.LeaveOneOut`), and competing outlier hypotheses are kept with their
    odds (:class:`~stoic.models.LeaveOneOutGP`). Replicates that agree are always trusted. The
    search (:class:`~stoic.policies.verified.VerifiedImprovement`) is greedy, and evaluates again an
    incumbent that may be an outlier and a rejected result that would be the best, before it builds
    on them. Reports integrate the hyperparameters out (:attr:`~stoic.Learner.estimate`).

    It differs from :func:`~stoic.recipes.outliers.loo_gp_ucb` in the acquisition, in an outlier
    penalty of 2 nats instead of 3, and in a broad prior of the noise, each chosen by measurement.

    Parameters
    ----------
    domain, prior, initial, seed:
        As in every recipe.

    Guarantee
    ---------
    No theorem about the regret. For the model that of :class:`~stoic.defences.LeaveOneOut` for a
    fixed point: an outlier of any size moves the mean of a hypothesis that may reject it by a
    bounded number of standard deviations. All else is measured: the documentation's contest.
    """
    check_prior(domain, prior)
    model, confidence, policy = default_parts(domain, prior)
    return Learner(domain, model, confidence, after_design(policy, initial), seed)
