"""Examples of each defence that needs arguments: from a domain to those of one or more."""

from literal import one
from stoic import testing
from stoic.confidence import Fixed
from stoic.defences import AdaptivePlateau, Anchored, Diagnostics, Plateau, Truncation
from stoic.defences.anchored import Reach
from stoic.models import GaussianProcess
from stoic.posteriors.fitting import Fitting
from stoic.posteriors.student_t_noise import StudentTNoise


def anchor(domain):
    return GaussianProcess(testing.example_prior(domain), Plateau(2.0, 1.0, 1.0))


def fitted_anchor(domain):
    return GaussianProcess(testing.example_prior(domain), AdaptivePlateau(), Fitting())


EXAMPLES = {
    Plateau: lambda domain: [
        {"half_width": 1.0, "shape": 0.5, "centre": 1.0},
        {"half_width": 0.5, "shape": 2.0, "centre": 1.0, "unit": "noise"},
        {"half_width": 0.0, "shape": 1e-3, "centre": 1.0, "negligible": 0.0},
    ],
    AdaptivePlateau: lambda domain: [
        {},
        {"half_width": "quantile", "unit": "scale"},
        {"half_width": 0.5, "shape": 0.5},
    ],
    Anchored: lambda domain: [
        {"anchor": anchor(domain), "unit": "scale"},
        {"anchor": anchor(domain), "prequential": True},
        {"anchor": anchor(domain), "scale": one, "prequential": True, "unit": "scale"},
        {"anchor": fitted_anchor(domain)},
        {"anchor": anchor(domain), "half_width": Reach(Fixed(2.0), 0.5), "scale": one},
    ],
    Diagnostics: lambda domain: [
        {"judge": StudentTNoise(testing.example_prior(domain))},
        {"judge": StudentTNoise(testing.example_prior(domain), 1.5, Fitting()), "level": 0.2},
    ],
    Truncation: lambda domain: [{"moment": 3.0}, {"moment": 0.5, "alpha": 0.3, "scale": 2.0}],
}
