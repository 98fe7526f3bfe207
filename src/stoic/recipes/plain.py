"""Recipe of the baseline, GP-UCB."""

from __future__ import annotations

from stoic.confidence import Confidence, Schedule
from stoic.defences import Trust
from stoic.domains import Domain
from stoic.models import GaussianProcess
from stoic.policies import UCB, Policy
from stoic.posteriors.prior import Prior
from stoic.posteriors.scales import Scale, mean_and_sd
from stoic.recipes.base import Parts, recipe
from stoic.recipes.parts import check_prior, family, fitting


@recipe
def gp_ucb(
    domain: Domain,
    *,
    prior: Prior | None = None,
    confidence: Confidence | None = None,
    scale: Scale = mean_and_sd,
    policy: Policy | None = None,
) -> Parts:
    """GP-UCB [Srinivas2010]_: the baseline, without a defence.

    Without a prior, hyperparameters maximise the marginal likelihood of results that are
    standardised by ``scale``, by default plainly, as is common practice.

    Parameters
    ----------
    prior, confidence, scale, policy:
        As in every recipe, see :mod:`stoic.recipes`: the hyperparameters, the width of the band,
        the units of the results, and the acquisition.

    Guarantee
    ---------
    With a given prior that f is drawn from and ``FiniteUnion`` or ``CompactUnion``, or an f of
    bounded norm and ``SelfNormalised``: regret O(sqrt(T beta_T gamma_T)), with probability
    1 - delta. None with fitted hyperparameters or the default schedule, and none against outliers.
    """
    check_prior(domain, prior)
    model = GaussianProcess(prior or family(domain), Trust(), fitting(prior, scale))
    return Parts(model, confidence or Schedule(), policy or UCB())
