"""Every model keeps the contract, on every kind of domain that it is for."""

import pytest

from stoic import testing
from stoic.defences import Plateau, Truncation
from stoic.models import (
    MODELS,
    GaussianProcess,
    LeastSquares,
    LeaveOneOutGP,
    StudentTProcess,
    TruncatedFeatures,
)
from stoic.posteriors.features import Nystroem
from stoic.posteriors.fitting import FixedHyperparameters
from stoic.posteriors.levels import FeatureLevel
from stoic.posteriors.newton import NewtonBasis

DOMAINS = testing.example_domains()


def examples(domain):
    """Examples of each model on a domain, with given hyperparameters."""
    prior = testing.example_prior(domain)
    made = {
        GaussianProcess: [GaussianProcess(prior), GaussianProcess(prior, Plateau(2.0, 1.0, 1.0))],
        StudentTProcess: [StudentTProcess(prior)],
        LeaveOneOutGP: [
            LeaveOneOutGP(prior),
            LeaveOneOutGP(prior, FixedHyperparameters()),
            LeaveOneOutGP(prior, half_width=1.0, rounds=2),
        ],
        TruncatedFeatures: [
            TruncatedFeatures(prior, Nystroem(), FeatureLevel(100), Truncation(4.0))
        ],
    }
    if domain.finite:
        made[LeastSquares] = [LeastSquares(prior, NewtonBasis.of(prior.kernel, domain, 0.1))]
    return made


def test_every_model_has_examples():
    assert set(examples(DOMAINS[0])) == set(MODELS)


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
@pytest.mark.parametrize("model", MODELS)
def test_every_model_keeps_the_contract(model, domain):
    for example in examples(domain).get(model, ()):
        # The fixed point of a mixture is iterated to, from another start.
        tolerance = 1e-3 if model is LeaveOneOutGP else 1e-6
        testing.check_model(example, domain, tolerance)
