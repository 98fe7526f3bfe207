"""Models: from observations to a posterior, usually by a process prior and a defence."""

from stoic.models.gaussian import GaussianProcess
from stoic.models.leave_one_out import LeaveOneOutGP
from stoic.models.linear import LeastSquares
from stoic.models.student_t import StudentTProcess
from stoic.models.truncated import TruncatedFeatures
from stoic.posteriors.base import Model

MODELS: tuple[type[Model], ...] = (
    GaussianProcess,
    StudentTProcess,
    LeaveOneOutGP,
    TruncatedFeatures,
    LeastSquares,
)

__all__ = [
    "MODELS",
    "GaussianProcess",
    "LeastSquares",
    "LeaveOneOutGP",
    "Model",
    "StudentTProcess",
    "TruncatedFeatures",
]
