"""Student-t process, conditioned as a Gaussian process is."""

from __future__ import annotations

from dataclasses import dataclass, field

from stoic.data import Observations
from stoic.defences.base import Defence
from stoic.defences.trust import Trust
from stoic.domains import Domain
from stoic.models.gaussian import GaussianProcess
from stoic.posteriors.arms import Arms
from stoic.posteriors.base import Posterior
from stoic.posteriors.exact import Exact
from stoic.posteriors.fitting import Fitting, FixedHyperparameters
from stoic.posteriors.prior import Prior
from stoic.posteriors.student_t import StudentT, check_freedom


@dataclass(frozen=True, eq=False)
class StudentTProcess:
    """Student-t process [Shah2014]_, conditioned as :class:`GaussianProcess` is.

    Its mean is the Gaussian process's. Its deviation is too, times a factor that grows with the
    misfit of the results: it widens where the results are unlikely, and rejects none of them.

    Parameters
    ----------
    prior, defence, fitting:
        As in :class:`GaussianProcess`. Fit by
        :class:`~stoic.posteriors.student_t.StudentTLikelihood` with the same ``freedom``.
    freedom:
        nu > 2, the degrees of freedom; for large ones it is the Gaussian process.

    Guarantee
    ---------
    The exact posterior, if results and f are jointly Student-t. None against outliers: one result
    of size c moves the mean by a multiple of c, and the deviation with it.
    """

    prior: Prior
    defence: Defence = field(default_factory=Trust)
    fitting: Fitting | FixedHyperparameters = field(default_factory=FixedHyperparameters)
    freedom: float = 3.0

    def __post_init__(self) -> None:
        check_freedom(self.freedom, 2.0)

    def __call__(
        self, domain: Domain, observations: Observations, previous: Posterior | None = None
    ) -> StudentT:
        assert previous is None or isinstance(previous, StudentT)
        # The factor depends on all rows, and is made anew
        earlier = None if previous is None else previous.gaussian
        gaussian = GaussianProcess(self.prior, self.defence, self.fitting)(
            domain, observations, earlier
        )
        assert isinstance(gaussian, Arms | Exact)
        return StudentT.around(gaussian, observations, self.freedom)
