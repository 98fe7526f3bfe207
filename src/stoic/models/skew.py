"""Explanation of a function that is good in few places, by a scale on which it is smooth. Ours.

Where most results are poor and alike, a stationary process fits them with a small amplitude, and
the few good ones cost less as an outlier each than as a summit. On the scale
w(y) = asinh((y - median) / MAD), linear near the median and logarithmic beyond, a summit is as
smooth as the rest. A density of w is one of y with the factor w'(y), and that of an outlier has its
own deviation as its scale: so the evidence of both models is that of the same results.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from stoic.data import Array, Booleans
from stoic.defences.plateau import small_sample_factor
from stoic.models.fixed_points import Search
from stoic.models.hypotheses import Hypothesis
from stoic.models.rescaling import Rescaling, likeliest_on
from stoic.posteriors.fitting import Fitting
from stoic.posteriors.scales import median_and_mad_in_space

_FEWEST = 3  # rejected results that are too good: two may well be outliers
# Results in all. With 20 instead of 40 in 36 sets of 25 random settings on narrow hills, one result
# in ten wrong, the loss is .69 instead of .89 and 45 right results are rejected instead of 152, but
# seven sets recommend an outlier instead of none; of 15 settings 14 instead of four would with 12.
# Ten searches of such a hill in two dimensions end after 40 trials at .0001 instead of .0004 (.0014
# instead of .0061 with outliers). Where three in ten are wrong, Hartmann's at .30 instead of .24.
_LEAST = 20
_GROWTH = math.log(1.1)  # of the number of results, until it is asked for again


def with_few_good_results(
    search: Search, settled: Hypothesis, earlier: Hypothesis | None = None
) -> Hypothesis | None:
    """Return the explanation that trusts what the same model trusts on the other scale, or None.

    It is asked for where ``settled`` rejects at least three results, of twenty or more, that are
    better than it expects at any trusted input, each the only one at its own: where there are
    others, they tell more. The posterior is that of the results as they are, the evidence that of
    the model on the other scale, less the odds against one outlier. None where that is negligible.
    Where it was no explanation of ``earlier``, the result for fewer observations, it is not asked
    for until a new result is too good, or there are a tenth more.
    """
    rules, posterior, observations = search.rules, settled.posterior, search.observations
    if len(observations) < _LEAST or posterior is None or not rules.fitting.refits:
        return None
    trusted = search.trusted(settled)
    finite = np.isfinite(observations.observed)
    rejected = finite & ~trusted
    if rejected.sum() < _FEWEST or not trusted.any():
        return None
    rejected[search.replicates[0]] = False
    expected = posterior.predict(observations.x[trusted])[0]
    too_good = rejected & (observations.observed > expected.max())
    if too_good.sum() < _FEWEST or not _due(earlier, too_good):
        return None
    scale = AsinhScale(*median_and_mad_in_space(search.domain, observations))
    if isinstance(rules.fitting, Fitting) and rules.fitting.step:
        # A step that is given is one on the scale of the results
        rules = replace(rules, fitting=replace(rules.fitting, step=None))
    other = Search(rules, search.domain, scale.of(observations))
    there, evidence = likeliest_on(scale, other, observations)
    evidence -= rules.outlier_penalty * small_sample_factor(observations)
    if not (rejected & there).any() or not evidence > settled.evidence + math.log(rules.negligible):
        return None
    fitted = search.fit(Hypothesis(np.where(there, 0.0, np.inf), settled.negligible), None, None)
    if fitted is None or fitted.posterior is None:
        return None
    prior = fitted.posterior.prior
    excess = search.judge(fitted).excess(rules.half_width, rules.shape)
    fitted = replace(fitted, excess=np.where(there, 0.0, excess))
    fitted = search.weighed(search.under(fitted, prior))
    return replace(fitted, evidence=evidence, credit=evidence - fitted.evidence)


def _due(earlier: Hypothesis | None, too_good: Booleans) -> bool:
    """Return True if the other scale has a say already, or may have one since ``earlier``."""
    k = 0 if earlier is None else len(earlier.excess)
    if earlier is None or not k or any(each.credit for each in earlier.explanations):
        return True
    n = len(too_good)
    grown = math.floor(math.log(n) / _GROWTH) > math.floor(math.log(k) / _GROWTH)
    return k == n or grown or bool(too_good[k:].any())


@dataclass(frozen=True, slots=True)
class AsinhScale(Rescaling):
    """Scale w(y), about a centre and in units of a spread."""

    centre: float
    spread: float

    def __call__(self, y: Array) -> Array:
        return np.asarray(np.arcsinh((y - self.centre) / self.spread))

    def slopes(self, y: Array) -> Array:
        slopes: Array = 1.0 / np.hypot(1.0, (y - self.centre) / self.spread) / self.spread
        return slopes

    def inverse(self, w: Array) -> Array:
        y: Array = self.centre + self.spread * np.sinh(w)
        return y
