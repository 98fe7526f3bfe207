"""Recipe: a frozen value from which a learner is built on any domain."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import UnionType
from typing import Any, Concatenate, Generic, Literal, ParamSpec, TypeVar

from stoic.confidence import Confidence, Fixed, Theory
from stoic.confidence.base import check_width
from stoic.distances import Distance
from stoic.domains import Domain
from stoic.models import LeaveOneOutGP
from stoic.policies import Policy, VerifiedImprovement
from stoic.posteriors.base import Model
from stoic.promises import Bound


@dataclass(frozen=True)
class Parts:
    """Parts of a learner: a model, a confidence and a policy.

    A method that no recipe describes is written with these: ``Learner(domain, Parts(model,
    Fixed(2.0), UCB()))``. :func:`dataclasses.replace` exchanges one part of a recipe's:
    ``replace(a2_rcgp_ucb()(domain), policy=ExpectedImprovement())``.

    Parameters
    ----------
    model:
        From observations to a posterior, usually ``GaussianProcess(prior, defence, fitting)``.
    confidence:
        From the posterior to the width beta^(1/2) of the confidence band.
    policy:
        From the band to the next choice: acquisition and its maximisation. Confidence and policy
        are by default those of :func:`~stoic.recipes.robust`.
    """

    model: Model
    confidence: Confidence = field(default_factory=Fixed)
    policy: Policy = field(default_factory=VerifiedImprovement)


def on_their_own_scale(parts: Parts) -> Parts:
    """Return the parts with results modelled as they are.

    So that they can be compared with a threshold, or added up.
    """
    model = parts.model
    if isinstance(model, LeaveOneOutGP):
        return replace(parts, model=replace(model, compresses=False))
    return parts


@dataclass(frozen=True)
class Balancing:
    """Parts of learners to balance, and their regret bounds.

    Parameters
    ----------
    bases:
        The parts of each base learner.
    bounds:
        The putative regret bound of each.
    options:
        Keyword arguments of :class:`~stoic.balancing.Balanced`.
    """

    bases: tuple[Parts, ...]
    bounds: tuple[Bound, ...]
    options: Mapping[str, Any]


# Of arguments that are easily mistaken for a text: type, and how one is written
_WRITTEN = {"theory": (Theory, "Theory()"), "distance": (Distance, 'Distance("chebyshev")')}
# Types of plain data that an argument may have, and what to call them
_KINDS: dict[type, tuple[type | tuple[type, ...], str]] = {
    float: ((int, float), "a number"),
    int: (int, "a whole number"),
    bool: (bool, "True or False"),
    tuple: ((tuple, list), "a tuple"),
    type(None): (type(None), "None"),
}
_PLAIN = (type(None), int, float, str, list, tuple, dict)

Arguments = ParamSpec("Arguments")
Made = TypeVar("Made", bound=Parts | Balancing, covariant=True)


@dataclass(frozen=True, repr=False)
class Recipe(Generic[Made]):
    """Method with its arguments: prints as it is written, and is built on a domain.

    It pickles, compares and hashes where its arguments do. Whatever depends on the domain is
    computed when it is built, and wrong arguments are refused then: by
    ``Learner(domain, recipe, seed=0)``, or, if it may balance several learners, by
    :func:`~stoic.balancing.build`.

    Attributes
    ----------
    write:
        The function of :mod:`stoic.recipes` that the recipe is written with.
    arguments:
        Names and values of its arguments, as far as they were given.
    """

    write: Callable[..., Recipe[Made]]
    arguments: tuple[tuple[str, Any], ...] = ()

    def __call__(self, domain: Domain) -> Made:
        """Compute the parts of the learner on a domain."""
        # Pickle finds ``write`` by its name; the parts come from what it wraps
        make: Callable[..., Made] = inspect.unwrap(self.write)
        given = dict(self.arguments)
        try:
            return make(domain, **given)
        except (AttributeError, TypeError) as error:
            ours = make.__module__.startswith("stoic.")
            for each, annotation in typing.get_type_hints(make).items() if ours else ():
                expected = _mistaken(given[each], annotation) if each in given else ""
                if expected and each != "prior":  # which is refused with how it is written
                    raise TypeError(
                        f"{each} of {make.__name__} must be {expected}, got {given[each]!r}."
                    ) from error
            raise

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.arguments)
        return f"{self.write.__name__}({given})"


def _mistaken(value: object, annotation: object) -> str:
    """Say what else an argument has to be; empty if it may be that, or is no plain data."""
    if not isinstance(value, _PLAIN):
        return ""
    union = typing.get_origin(annotation) in (typing.Union, UnionType)
    names: list[str] = []
    for each in typing.get_args(annotation) if union else (annotation,):
        kind = typing.get_origin(each) or each
        if kind is Literal:
            names += map(repr, typing.get_args(each))
            if value in typing.get_args(each):
                return ""
        else:
            assert isinstance(kind, type)
            types, name = _KINDS.get(kind, (kind, kind.__name__))
            names.append(name)
            if isinstance(value, types):
                return ""
    return " or ".join(names)


def recipe(
    make: Callable[Concatenate[Any, Arguments], Made],
) -> Callable[Arguments, Recipe[Made]]:
    """Decorate a function from a domain and keyword arguments to parts: it writes a recipe."""
    _, *parameters = inspect.signature(make).parameters.values()  # the domain is given later
    signature = inspect.Signature(parameters)

    @functools.wraps(make)
    def write(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Recipe[Made]:
        name = make.__name__
        if args and isinstance(args[0], Domain):
            raise TypeError(f"A recipe is a value: write {name}() instead of {name}.")
        if args:
            raise TypeError(
                f"Arguments of {name} need their names, as in {name}(prior=prior), and a learner "
                f"is built with Learner(domain, {name}()): got {args[0]!r}."
            )
        try:
            given = signature.bind(**kwargs).arguments
        except TypeError as error:
            raise TypeError(f"{name}: {error}.") from None
        for each, (kind, written) in _WRITTEN.items():
            if given.get(each) is not None and not isinstance(given[each], kind):
                raise TypeError(f"{each} is written as {written}, got {given[each]!r}.")
        if given.get("confidence") is not None:
            check_width(given["confidence"])
        return Recipe(write, tuple(given.items()))

    # help() would follow __wrapped__, and show the domain
    write.__signature__ = signature  # type: ignore[attr-defined]
    write.writes_a_recipe = True  # type: ignore[attr-defined]
    return write
