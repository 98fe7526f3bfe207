"""What the observations say of each point that was tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.spatial.distance import cdist

from stoic.data import Array, Booleans, Integers, Observations
from stoic.domains import Domain
from stoic.posteriors.absorbed import WindowPosterior
from stoic.posteriors.base import Posterior
from stoic.posteriors.outlier import OutlierOdds
from stoic.posteriors.refined import Refined


@dataclass(frozen=True, slots=True)
class Judged:
    """Tried points (k, d), each judged by the observation there that is least likely an outlier.

    Attributes
    ----------
    at:
        Place of each observation among the points, shape (n,), -1 where it is at none.
    seen:
        Whether a point has an observation, shape (k,).
    outlier:
        P(outlier) of that observation given the others, shape (k,), 0 without one.
    otherwise:
        Mean of f at the point given the others, shape (k,).
    std:
        Its standard deviation, shape (k,), infinite without an observation.
    """

    at: Integers
    seen: Booleans
    outlier: Array
    otherwise: Array
    std: Array

    @classmethod
    def of(
        cls,
        tried: Array,
        odds: OutlierOdds,
        domain: Domain,
        observations: Observations,
        posterior: Posterior,
        refined: Refined | None = None,
    ) -> Self:
        """Judge points by the posterior of all observations, and near the best by a refined one.

        The model of the rows there has to agree that an observation is none. Of what the window of
        the other one leaves out it judges alone: that of all is too coarse there.
        """
        p, otherwise, std = odds.given_the_others(domain, observations, posterior)
        places = {bytes(x): k for k, x in enumerate(tried + 0.0)}  # no -0
        at = np.array([places.get(bytes(x), -1) for x in observations.x + 0.0])
        row = np.full(len(tried) + 1, -1)  # the last for observations at no such point
        by_doubt = np.argsort(p, kind="stable")[::-1]
        row[at[by_doubt]] = by_doubt  # of several observations the least P(outlier) counts
        row = row[:-1]
        seen = row >= 0
        outlier, known = np.where(seen, p[row], 0.0), np.where(seen, std[row], np.inf)
        if refined is not None:
            coarse = np.zeros(len(tried), dtype=np.bool_)
            if isinstance(posterior, WindowPosterior):
                coarse = ~np.isin(row, posterior.rows)
            near = observations.only(refined.rows)
            p, _, std = odds.given_the_others(domain, near, refined.near)
            here = cdist(tried, near.x) == 0.0
            inside, its = here.any(axis=1), np.where(here, p, np.inf).argmin(axis=1)
            both = np.where(coarse, p[its], np.maximum(outlier, p[its]))
            outlier = np.where(inside, both, outlier)
            known = np.minimum(known, np.where(inside, std[its], np.inf))
        return cls(at, seen, outlier, otherwise[row], known)
