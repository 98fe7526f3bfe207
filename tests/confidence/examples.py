"""Examples of each confidence that needs arguments: from a domain to those of one or more."""

from stoic.confidence import (
    BoundedNoise,
    CompactUnion,
    CorruptionBudget,
    CorruptionCount,
    EpochBudget,
    FeatureTruncation,
    FiniteUnion,
    Fixed,
    GrowingTruncation,
    Misspecified,
    NonAdaptive,
    SelfNormalised,
)
from stoic.posteriors.levels import FeatureLevel

EXAMPLES = {
    FiniteUnion: lambda domain: [{"arms": 25}],
    CompactUnion: lambda domain: [{"dim": domain.dim}],
    SelfNormalised: lambda domain: [
        {"norm": 1.5},
        {"norm": 1.5, "noise_sd": 0.4, "restarts": True},
    ],
    BoundedNoise: lambda domain: [{"squared_norm": 2.0}, {"squared_norm": 2.0, "gain": 3.0}],
    GrowingTruncation: lambda domain: [
        {"norm": 1.0, "moment": 2.0},
        {"norm": 1.0, "moment": 2.0, "alpha": 0.4, "constants": "theory"},
    ],
    FeatureTruncation: lambda domain: [
        {"norm": 1.0, "moment": 2.0, "level": FeatureLevel(100), "features": 32},
        {
            "norm": 1.0,
            "moment": 2.0,
            "level": FeatureLevel(100, constants="theory", drawn=True),
            "alpha": 0.4,
            "features": 1,
        },
    ],
    CorruptionCount: lambda domain: [
        {"base": Fixed(2.0), "corruptions": 0},
        {"base": FiniteUnion(25), "corruptions": 3},
        {"base": Fixed(2.0), "corruptions": "distrusted", "variance": False},
    ],
    CorruptionBudget: lambda domain: [{"base": Fixed(2.0), "budget": 3.0, "weight": 0.1}],
    Misspecified: lambda domain: [{"base": SelfNormalised(1.5), "error": 0.2}],
    EpochBudget: lambda domain: [
        {"base": Fixed(2.0), "budget": 3.0},
        {"base": FiniteUnion(25), "budget": 3.0, "form": "tight"},
        {"base": Fixed(2.0), "budget": 3.0, "form": "practice"},
    ],
    NonAdaptive: lambda domain: [{"norm": 1.5, "arms": 25}],
}
