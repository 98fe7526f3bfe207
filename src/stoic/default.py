"""Default model, confidence and policy of a learner."""

from __future__ import annotations

import math

import numpy as np

from stoic.confidence import Fixed
from stoic.defences import LeaveOneOut
from stoic.domains import Domain
from stoic.kernels import Matern52, Scaled
from stoic.models import LeaveOneOutGP
from stoic.policies import Policy, VerifiedImprovement
from stoic.posteriors.fitting import (
    BROAD_NOISE_PRIOR,
    Fitting,
    FixedHyperparameters,
    marginal_likelihood,
)
from stoic.posteriors.prior import Prior


def family(domain: Domain) -> Prior:
    """Matern 5/2 kernel with one lengthscale per coordinate, fitted where no prior is given."""
    return Prior(Scaled(Matern52(np.ones(domain.dim))), math.exp(-4.0))


def default_parts(
    domain: Domain, prior: Prior | None = None
) -> tuple[LeaveOneOutGP, Fixed, Policy]:
    """Model, confidence and policy of :func:`~stoic.recipes.robust`, which is documented."""
    fitting = (
        FixedHyperparameters() if prior else Fitting(marginal_likelihood, noise=BROAD_NOISE_PRIOR)
    )
    defence = LeaveOneOut(
        prior or family(domain), fitting, price=2.0, replicates=True, extreme=10.0
    )
    return LeaveOneOutGP(defence), Fixed(2.0), VerifiedImprovement()
