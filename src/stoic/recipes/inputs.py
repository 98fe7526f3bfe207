"""Recipes for perturbed inputs, which are moved before execution [Saday2025]_, [Bogunovic2018]_."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

from stoic.confidence import Confidence, Fixed
from stoic.distances import Distance
from stoic.domains import Domain
from stoic.policies import Policy
from stoic.policies.satisficing import Satisficing
from stoic.policies.stable import StableOpt
from stoic.posteriors.base import Model
from stoic.posteriors.prior import Prior
from stoic.recipes.base import Parts, Recipe, recipe
from stoic.recipes.plain import gp_ucb

_WIDTH = Fixed(2.0)


@recipe
def advers_1(
    domain: Domain,
    *,
    prior: Prior | None = None,
    threshold: float | Literal["adaptive"] = "adaptive",
    margin: float = 0.0,
    distance: Distance | None = None,
    confidence: Confidence = _WIDTH,
    model: Model | Recipe[Parts] | None = None,
    candidates: int = 1024,
) -> Parts:
    """AdveRS-1 [Saday2025]_: least loss below a threshold per unit of a move, Algorithm 1.

    Parameters
    ----------
    prior:
        Without one, fitted as in :func:`~stoic.recipes.gp_ucb`.
    threshold, margin, distance, candidates:
        See :class:`~stoic.policies.satisficing.Satisficing`; Euclidean by default. On a ``Box``,
        ``candidates`` quasi-random points are compared.
    confidence:
        The width; for the theory ``SelfNormalised(norm, noise_sd, delta)``.
    model:
        A model, or a recipe whose model is taken, instead of a Gaussian process that trusts all
        results: ``a2_rcgp_ucb()`` where some of them are outliers. It has a prior of its own.

    Guarantee
    ---------
    With a given prior (noise and kernel at most 1), ``SelfNormalised`` and tau <= max f: robust
    satisficing regret at most 4 width_T sqrt(T gamma_T), with probability 1 - delta, however inputs
    are moved; with :meth:`~stoic.distances.Distance.of_kernel`, lenient regret at most that plus
    B sum eps_t (Theorem 3.6). Certificates hold with the same probability. With a fixed width and
    with fitted hyperparameters: none.

    Notes
    -----
    The width that Lemma 3.1 prints, B + R sqrt(ln det(K + max(1, noise) I) + 2 ln(1 / delta)), is
    that of :class:`~stoic.confidence.SelfNormalised` if the prior's noise is 1, and not enough if
    it is less. With noise 0.01, B = R = 1 and delta = 0.1, one result at a point with k = 1 and
    f = 0 leaves f outside of the band with probability 0.74.
    """
    policy = Satisficing(threshold, 1.0, distance or Distance(), margin, candidates)  # p = 1
    return _parts(domain, prior, confidence, policy, model)


@recipe
def advers_2(
    domain: Domain,
    *,
    prior: Prior | None = None,
    threshold: float | Literal["adaptive"] = "adaptive",
    margin: float = 0.0,
    distance: Distance | None = None,
    confidence: Confidence = _WIDTH,
    model: Model | Recipe[Parts] | None = None,
    candidates: int = 1024,
) -> Parts:
    """AdveRS-2 [Saday2025]_: largest radius of moves above a threshold, Algorithm 2.

    Parameters
    ----------
    prior, threshold, margin, distance, confidence, model, candidates:
        As in :func:`advers_1`.

    Guarantee
    ---------
    As for :func:`advers_1` with ``SelfNormalised``, and if inputs are always moved by less than the
    largest critical radius of tau: lenient regret at most 4 width_T sqrt(T gamma_T), in any metric
    (Theorem 3.10). Certificates hold whatever happens to inputs. With a fixed width and with fitted
    hyperparameters: none.
    """
    policy = Satisficing(threshold, math.inf, distance or Distance(), margin, candidates)
    return _parts(domain, prior, confidence, policy, model)


@recipe
def advers_g(
    domain: Domain,
    *,
    prior: Prior | None = None,
    p: float = 2.0,
    threshold: float | Literal["adaptive"] = "adaptive",
    margin: float = 0.0,
    distance: Distance | None = None,
    confidence: Confidence = _WIDTH,
    model: Model | Recipe[Parts] | None = None,
    candidates: int = 1024,
) -> Parts:
    """AdveRS-G [Saday2025]_: between AdveRS-1 and AdveRS-2, section 4.

    Parameters
    ----------
    p:
        Power of the loss that a move d may cause, (kappa d)^p: 1 is AdveRS-1, infinity AdveRS-2.
    prior, threshold, margin, distance, confidence, model, candidates:
        As in :func:`advers_1`.

    Guarantee
    ---------
    As for :func:`advers_1` with ``SelfNormalised``: robust satisficing regret of p at most
    4 width_T sqrt(T gamma_T) (Corollary 4.2). With a fixed width and with fitted hyperparameters:
    none.
    """
    policy = Satisficing(threshold, p, distance or Distance(), margin, candidates)
    return _parts(domain, prior, confidence, policy, model)


@recipe
def stable_opt(
    domain: Domain,
    *,
    prior: Prior | None = None,
    radius: float,
    distance: Distance | None = None,
    probe: bool = False,
    confidence: Confidence = _WIDTH,
    model: Model | Recipe[Parts] | None = None,
    candidates: int = 1024,
) -> Parts:
    """StableOpt [Bogunovic2018]_: maximin of f over moves within a known radius.

    Parameters
    ----------
    radius:
        Largest assumed move of an input, in units of the distance.
    probe:
        True if the learner moves inputs itself, see :class:`~stoic.policies.stable.StableOpt`.
    prior, distance, confidence, model, candidates:
        As in :func:`advers_1`.

    Guarantee
    ---------
    With ``probe``, a given prior and ``SelfNormalised``: after T rounds, the choice with the
    best certificate is within eps of the best worst value, with T / (width_T^2 gamma_T) of the
    order of 1 / eps^2, with probability 1 - delta (Theorem 1 of [Bogunovic2018]_). If the radius is
    wrong, with a fixed width and with fitted hyperparameters: none.
    """
    policy = StableOpt(radius, distance or Distance(), probe, candidates)
    return _parts(domain, prior, confidence, policy, model)


def _parts(
    domain: Domain,
    prior: Prior | None,
    confidence: Confidence,
    policy: Policy,
    model: Model | Recipe[Parts] | None,
) -> Parts:
    if model is not None and prior is not None:
        raise ValueError("A model has a prior of its own: give a prior or a model, not both.")
    if isinstance(model, Recipe):
        return replace(model(domain), confidence=confidence, policy=policy)
    if model is None:
        model = gp_ucb(prior=prior)(domain).model
    return Parts(model, confidence, policy)
