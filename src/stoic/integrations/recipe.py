"""Recipe of a study: a value, a text that names one, or a function in a file."""

from __future__ import annotations

import ast
import difflib
import importlib.util
import inspect
import math
import re
import sys
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from optuna.study import Study

from stoic import recipes
from stoic.balancing import Balanced, build
from stoic.domains import Domain, Finite
from stoic.integrations.executed import finite
from stoic.learner import Learner
from stoic.policies.ucb import PLACE
from stoic.posteriors.scales import median_and_spread_in_space
from stoic.recipes import Balancing, Parts
from stoic.refusal import Refusal

# A value of stoic.recipes, or a function that may build a learner on a grid of the domain.
Recipe = Callable[[Domain], Parts | Balancing | Learner | Balanced]

RECIPE = "stoic:recipe"  # user attribute of a study: the text of its recipe

FORMS = "a name as in gp_ucb, one with arguments as in rgp_ucb(budget=5), or FILE.py:FUNCTION"

# By identity: where inputs move, WHERE_INPUTS_MOVE takes its place, but not that of a robust()
# that somebody asked for.
DEFAULT: Recipe = recipes.robust()
# A2-RCGP-UCB with a broad scale. A certificate is a bound between the settings that were run, and a
# mixture of outlier hypotheses gave one to an outlier (15 above the truth in a test where this one
# is within 3): the model of robust() is for recommendations at settings that were run.
WHERE_INPUTS_MOVE: Recipe = recipes.a2_rcgp_ucb(
    anchor_shape=1.0,
    scale=median_and_spread_in_space,
    small_sample=True,
    place=PLACE,
    retries=1,
)

_IN_A_FILE = re.compile(r"(?P<file>.+\.py):(?P<function>[^\W\d]\w*)")
_LONGEST = 1000  # letters of a text
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


@dataclass(frozen=True)
class InFile:
    """Recipe in a file: a function from a domain to a learner, or a value.

    It may have what a text cannot express: a prior, a grid. The file is run by :meth:`load`, or
    when the recipe is first built.

    Attributes
    ----------
    text:
        ``FILE.py:FUNCTION``.
    directory:
        Base of a relative path of the file.
    """

    text: str
    directory: Path = field(default=Path(), compare=False)

    def load(self) -> InFile:
        """Run the file.

        Raises
        ------
        Refusal
            If there is no such file or function, or the file raises.
        """
        _ = self._found
        return self

    def __call__(self, domain: Domain) -> Any:
        found = self._found
        return found(domain) if callable(found) else found

    def __repr__(self) -> str:
        return self.text

    @cached_property
    def _found(self) -> object:
        found = _IN_A_FILE.fullmatch(self.text)
        assert found is not None
        return _from_file(self.directory / found["file"], found["function"])


def parse(text: str, directory: Path = Path()) -> recipes.Recipe[Any] | InFile:
    """Read the text of a recipe; a file is not opened.

    Either the name of one in :mod:`stoic.recipes` that needs nothing but the domain, or ``robust``,
    perhaps with arguments that are literals: ``rgp_ucb(budget=5)``. Or ``FILE.py:FUNCTION``.

    Raises
    ------
    Refusal
        If it is none of the forms, if there is no recipe of that name, or if the recipe does not
        have such arguments or needs what a text cannot express.
    """
    if len(text) > _LONGEST:
        raise Refusal(
            f"A recipe has at most {_LONGEST} letters, got {len(text)} that begin with "
            f"{text[:40]!r}."
        )
    if _IN_A_FILE.fullmatch(text.strip()):
        return InFile(text.strip(), directory)
    if re.search(r"\.py\b", text):
        raise Refusal(f"Which function is missing in the recipe {text!r}: FILE.py:FUNCTION.")
    name, arguments = _call(text)
    _check(name, arguments)
    return _NAMED[name](**arguments)


def load(recipe: Recipe | str) -> Recipe:
    """Read a text, and run the file that it or a recipe is in."""
    recipe = parse(recipe) if isinstance(recipe, str) else recipe
    return recipe.load() if isinstance(recipe, InFile) else recipe


def text_of(recipe: Recipe) -> str | None:
    """Text from which a recipe can be read again; None if there is none."""
    text = repr(recipe)
    try:
        return text if parse(text) == recipe else None
    except Refusal:
        return None


def build_learner(recipe: Recipe, domain: Domain) -> Learner | Balanced:
    """Build a recipe on a domain, or a grid of it.

    Raises
    ------
    Refusal
        If the recipe has a text and cannot be built, or if it gives no learner.
    """
    try:
        made = recipe(domain)
        learner = build(domain, made) if isinstance(made, Parts | Balancing) else made
    except Exception as error:
        if not isinstance(recipe, recipes.Recipe | InFile):
            raise
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise Refusal(f"The recipe {recipe!r} cannot be used: {kind}{error}") from error
    if not isinstance(learner, Learner | Balanced):
        raise Refusal(
            f"The recipe {recipe!r} returned {learner!r}: a function from a domain to a learner "
            "is needed."
        )
    return learner


def stored_recipe(study: Study) -> str | None:
    """Return the text of the recipe that is recorded with a study; None if there is none."""
    text = study.user_attrs.get(RECIPE)
    return text if isinstance(text, str) else None


def replaces(recipe: Recipe, text: str | None) -> bool:
    """Return True if a recipe is another one than that of a recorded text."""
    try:
        return text is None or parse(text) != recipe
    except Refusal:
        return True


def record_recipe(study: Study, recipe: Recipe) -> None:
    """Record a recipe with a study, in the place of an earlier one, if it has a text."""
    text = text_of(recipe)
    if text is not None and replaces(recipe, stored_recipe(study)):
        study.set_user_attr(RECIPE, text)


def recipe_to_look_with(study: Study) -> tuple[Recipe, str | None]:
    """Return the recipe of a study, and if it is not the recorded one, why not.

    A file that is named in a storage is not run: whoever may write to a storage may not run
    programs here.
    """
    text = stored_recipe(study)
    if text is None:
        return DEFAULT, None
    try:
        recipe = parse(text)
    except Refusal as refusal:
        return DEFAULT, f"What follows is what robust believes, not the study's recipe: {refusal}"
    if isinstance(recipe, InFile):
        return DEFAULT, (
            f"What follows is what robust believes. The study's recipe is {text}, and a file is "
            "not run only because a storage names it: give it as --recipe, or recipe=."
        )
    return recipe, None


def _call(text: str) -> tuple[str, dict[str, Any]]:
    """Name and arguments of a text."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        if isinstance(tree, ast.Name):
            return tree.id, {}
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name):
            if tree.args or any(keyword.arg is None for keyword in tree.keywords):
                raise Refusal(
                    f"Arguments of a recipe need their names, as in rgp_ucb(budget=5): got {text}."
                )
            arguments = {str(each.arg): ast.literal_eval(each.value) for each in tree.keywords}
            return tree.func.id, arguments
    except Refusal:
        raise
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Refusal(f"Cannot read the recipe {text!r}: write {FORMS}.") from error
    raise Refusal(f"Cannot read the recipe {text!r}: write {FORMS}.")


def _check(name: str, arguments: dict[str, Any]) -> None:
    """Refuse unknown recipes, and those that need more than a domain and these arguments."""
    if name not in _NAMED:
        raise Refusal(f"There is no recipe {name!r}: {_meant(name, _NAMED)}")
    recipe = _NAMED[name]
    hints = get_type_hints(recipe)
    signature = inspect.signature(recipe).parameters
    others = list(signature)
    if "seed" not in others:  # in older texts, and without effect: a study has its sampler's
        arguments.pop("seed", None)
    needed = [key for key in others if signature[key].default is inspect.Parameter.empty]
    lacking = [f"a {key}" for key in needed if not _words(hints[key])]
    if hints["domain"] is Finite:
        lacking.append("a grid")
    if lacking:
        raise Refusal(
            f"{name} needs {' and '.join(lacking)}, which a text cannot say: write a function from "
            "a domain to a learner into a file, and give FILE.py:FUNCTION."
        )
    for key, value in arguments.items():
        if key not in others:
            raise Refusal(f"{name} has no argument {key!r}: {_meant(key, others)}")
        words = _words(hints[key])
        if not words:
            raise Refusal(
                f"A text cannot say the argument {key} of {name}: write a function from a domain "
                "to a learner into a file, and give FILE.py:FUNCTION."
            )
        if not any(_fits(value, hint) for hint in _members(hints[key])):
            raise Refusal(f"{key} of {name} must be {' or '.join(words)}, got {value!r}.")
        _check_size(name, key, value, float in _members(hints[key]))
    for key in needed:
        if key not in arguments:
            raise Refusal(f"{name} needs its argument {key}, {_words(hints[key])[0]}.")


def _check_size(name: str, key: str, value: object, real: bool) -> None:
    """Refuse a number that is out of range: a text may come from a storage."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    if finite(value) is None:
        raise Refusal(f"{key} of {name} must be a finite number.")
    largest = math.inf if real else _SEEDS if key == "seed" else _LARGEST
    if abs(value) > largest:
        raise Refusal(f"{key} of {name} must be a whole number up to {largest}, got {value}.")


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)


def _words(hint: Any) -> list[str]:
    """Describe the values of a type that a text can express."""
    words = []
    for member in _members(hint):
        if get_origin(member) is Literal:
            words += [repr(value) for value in get_args(member)]
        elif member in _WORDS and member is not types.NoneType:
            words.append(_WORDS[member])
    return words


def _fits(value: object, hint: Any) -> bool:
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return hint in _WORDS and isinstance(value, hint)


def _meant(name: str, there: Iterable[str]) -> str:
    names = list(there)
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}."


def _from_file(path: Path, name: str) -> object:
    """Return a function or a recipe of a file, after running the file."""
    if not path.is_file():
        raise Refusal(f"There is no file {str(path)!r} with the recipe {name}.")
    module_name = f"stoic_recipe_{path.stem}"
    specification = importlib.util.spec_from_file_location(module_name, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[module_name] = module  # where dataclasses look for the names in annotations
    try:
        specification.loader.exec_module(module)
    except Exception as error:
        raise Refusal(f"{path} raised {type(error).__name__}: {error}") from error
    found: object = getattr(module, name, None)
    if not callable(found) and not isinstance(found, Parts | Balancing):
        public = [key for key, value in vars(module).items() if callable(value)]
        raise Refusal(f"There is no function {name!r} in {path}: {_meant(name, public)}")
    return found
