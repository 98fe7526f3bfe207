"""Text of a recipe: what Python prints, and arguments of its values without their names."""

from __future__ import annotations

import ast
import inspect
import math
import types
from collections.abc import Callable
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from stoic import recipes
from stoic.confidence import Confidence, Fixed, Schedule, SelfNormalised, Theory
from stoic.domains import Finite
from stoic.integrations.reported import finite
from stoic.policies import UCB, Initial, Policy, Requery, VerifiedImprovement
from stoic.posteriors.features import Features, Fourier, Nystroem
from stoic.posteriors.outlier import OutlierOdds
from stoic.recipes import ActingPlateau, Anchor, Threats
from stoic.refusal import RefusalError, meant

FORMS = "a name as in gp_ucb, one with arguments as in rgp_ucb(budget=5), or FILE.py:FUNCTION"

_LARGEST = 100_000  # count in a text: with ten times as many, designs take minutes
_SEEDS = 1 << 64

_WORDS: dict[Any, str] = {
    float: "a number",
    int: "a whole number",
    bool: "True or False",
    types.NoneType: "None",
}

_NAMED: dict[str, Callable[..., recipes.Recipe[Any]]] = {
    recipe.__name__: recipe for recipe in recipes.RECIPES
}
# Values that a text can have, by the type of the argument.
_VALUES: dict[Any, tuple[type, ...]] = {
    Theory: (Theory,),
    ActingPlateau: (ActingPlateau,),
    Anchor: (Anchor,),
    Threats: (Threats,),
    OutlierOdds: (OutlierOdds,),
    Policy: (UCB, VerifiedImprovement, Requery, Initial),
    Confidence: (Fixed, Schedule, SelfNormalised),
    Features: (Nystroem, Fourier),
}
_CLASSES = {value.__name__: value for values in _VALUES.values() for value in values}
# Arguments whose fields may stand among those of the recipe: rgp_ucb(budget=5, norm=2.0).
_FLAT: dict[str, type] = {
    "plateau": ActingPlateau,
    "anchor": Anchor,
    "threats": Threats,
    "theory": Theory,
}
# Of the policy of a recipe, as they are written more shortly than policy=Initial(UCB(1), 5).
_TWEAKS: dict[str, Any] = {"initial": int, "retries": int | None, "second_look": float | None}


def read(text: str) -> recipes.Recipe[Any]:
    """Read the text of a recipe.

    It is the name of one in :mod:`stoic.recipes` that needs nothing but the domain, perhaps with
    arguments that are literals, or values of literals: ``rgp_ucb(budget=5)``,
    ``gp_ucb(policy=UCB(retries=1))``. Arguments of a value may stand for it: ``gp_ucb(retries=1)``.

    Raises
    ------
    RefusalError
        If it cannot be read, if there is no recipe of that name, or if the recipe does not have
        such arguments or needs what a text cannot express.
    """
    try:
        # Whatever the length: 100,000 signs before a number are a MemoryError of the parser
        tree = ast.parse(text.strip(), mode="eval").body
        name, arguments = _call(tree, text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, RefusalError):
            raise  # it is a ValueError
        raise RefusalError(f"Cannot read the recipe {text!r}: write {FORMS}.") from error
    if name not in _NAMED:
        raise RefusalError(f"There is no recipe {name!r}: {meant(name, _NAMED)}")
    recipe = _NAMED[name]
    hints = get_type_hints(recipe)
    signature = inspect.signature(recipe).parameters
    needed = [key for key in signature if signature[key].default is inspect.Parameter.empty]
    lacking = [f"a {key}" for key in needed if not _words(hints[key])]
    if hints["domain"] is Finite:
        lacking.append("a grid")
    if lacking:
        raise RefusalError(
            f"{name} needs {' and '.join(lacking)}, which a text cannot say: write a function from "
            "a domain to a learner into a file, and give FILE.py:FUNCTION."
        )
    arguments = _nested(name, list(signature), arguments)
    _check(name, arguments, {key: hints[key] for key in signature})
    for key in needed:
        if key not in arguments:
            raise RefusalError(f"{name} needs its argument {key}, {_words(hints[key])[0]}.")
    return recipe(**arguments)


def _call(node: ast.expr, text: str) -> tuple[str, dict[str, Any]]:
    """Name and arguments of a call, or of a name without any."""
    if isinstance(node, ast.Name):
        return node.id, {}
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
        raise ValueError(text)
    if node.args or any(keyword.arg is None for keyword in node.keywords):
        raise RefusalError(
            f"Arguments of a recipe need their names, as in rgp_ucb(budget=5): got {text}."
        )
    return node.func.id, {str(each.arg): _value(each.value, text) for each in node.keywords}


def _value(node: ast.expr, text: str) -> Any:
    """Literal, or a value of literals."""
    if not isinstance(node, ast.Call):
        return ast.literal_eval(node)
    if not (isinstance(node.func, ast.Name) and node.func.id in _CLASSES):
        raise ValueError(text)
    name, arguments = _call(node, text)
    _check(name, arguments, get_type_hints(_CLASSES[name]))
    return _made(name, arguments)


def _made(name: str, arguments: dict[str, Any]) -> Any:
    try:
        return _CLASSES[name](**arguments)
    except (TypeError, ValueError) as error:
        raise RefusalError(f"{name} cannot be used: {error}") from error


def _nested(name: str, parameters: list[str], given: dict[str, Any]) -> dict[str, Any]:
    """Put arguments that stand for a value into it."""
    arguments = {key: value for key, value in given.items() if key in parameters}
    rest = {key: value for key, value in given.items() if key not in parameters}
    for parameter in [key for key in _FLAT if key in parameters and key not in arguments]:
        kind = _FLAT[parameter]
        hints = get_type_hints(kind)
        own = {
            short: rest.pop(key)
            for key in list(rest)
            if (short := key if key in hints else key.removeprefix(f"{parameter}_")) in hints
        }
        if own:
            _check(name, own, hints)
            default = {"constants": "practice"} if kind is Theory else {}
            arguments[parameter] = _made(kind.__name__, default | own)
    own = {key: rest.pop(key) for key in _TWEAKS if key in rest}
    _check(name, own, _TWEAKS)
    if own and "policy" in parameters and "policy" not in arguments:
        arguments["policy"] = _policy(name, **own)
    if "seed" in rest and name == "ata_gp_ucb" and "features" not in arguments:
        arguments["features"] = Nystroem(seed=rest["seed"])
    rest.pop("seed", None)  # without effect otherwise: a study has its sampler's
    return arguments | rest


def _policy(
    name: str,
    initial: int = 0,
    retries: int | None = None,
    second_look: float | None = 1.0,
) -> Policy:
    """Policy of a recipe with these tweaks."""
    policy: Policy = VerifiedImprovement() if name == "robust" else UCB(retries)
    if name == "loo_gp_ucb" and second_look is not None:
        policy = Requery(policy, second_look)
    return Initial(policy, initial) if initial else policy


def _check(name: str, arguments: dict[str, Any], hints: dict[str, Any]) -> None:
    """Refuse arguments of a recipe or a value that it does not have or that do not fit."""
    for key, value in arguments.items():
        if key not in hints:
            raise RefusalError(f"{name} has no argument {key!r}: {meant(key, hints)}")
        words = _words(hints[key])
        if not words:
            raise RefusalError(
                f"A text cannot say the argument {key} of {name}: write a function from a domain "
                "to a learner into a file, and give FILE.py:FUNCTION."
            )
        if not any(_fits(value, hint) for hint in _members(hints[key])):
            raise RefusalError(f"{key} of {name} must be {' or '.join(words)}, got {value!r}.")
        _check_size(name, key, value, float in _members(hints[key]))


def _check_size(name: str, key: str, value: object, real: bool) -> None:
    """Refuse a number that is out of range: a text may come from a storage."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    if finite(value) is None:
        raise RefusalError(f"{key} of {name} must be a finite number.")
    largest = math.inf if real else _SEEDS if key == "seed" else _LARGEST
    if abs(value) > largest:
        raise RefusalError(f"{key} of {name} must be a whole number up to {largest}, got {value}.")


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _words(hint: Any) -> list[str]:
    """Describe the values of a type that a text can express."""
    words: list[str] = []
    for member in _members(hint):
        words += [f"{value.__name__}(...)" for value in _VALUES.get(member, ())]
        if get_origin(member) is Literal:
            words += [repr(value) for value in get_args(member)]
        elif member in _WORDS and member is not types.NoneType:
            words.append(_WORDS[member])
    return words


def _fits(value: object, hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if hint in _VALUES:
        return isinstance(value, _VALUES[hint])
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return hint in _WORDS and isinstance(value, hint)
