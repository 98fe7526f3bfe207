"""Method of a study: a function from a domain to a learner, or a text that names one."""

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
from pathlib import Path
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from optuna.study import Study

from stoic import recipes
from stoic.balancing import Balanced
from stoic.domains import Domain, Finite
from stoic.integrations.reported import finite
from stoic.learner import Learner
from stoic.policies.ucb import PLACE
from stoic.posteriors.scales import median_and_spread_in_space
from stoic.refusal import Refusal

Recipe = Callable[[Domain], Learner | Balanced]

RECIPE = "stoic:recipe"  # user attribute of a study: the text of its recipe

FORMS = "a name as in gp_ucb, one with arguments as in rgp_ucb(budget=5), or FILE.py:FUNCTION"

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


def where_inputs_move(domain: Domain) -> Learner:
    """A2-RCGP-UCB with a broad scale: the default where inputs move.

    A certificate is a bound between the settings that were run. A mixture of outlier hypotheses
    gave one to an outlier (15 above the truth in a test where this one is within 3), so the model
    of :func:`~stoic.recipes.robust` is for recommendations at settings that were run.
    """
    return recipes.a2_rcgp_ucb(
        domain,
        anchor_shape=1.0,
        scale=median_and_spread_in_space,
        small_sample=True,
        place=PLACE,
        retries=1,
    )


_Callable = Callable[..., Learner | Balanced]
_NAMED: dict[str, _Callable] = {
    **{recipe.__name__: cast("_Callable", recipe) for recipe in recipes.RECIPES},
}


@dataclass(frozen=True)
class Written:
    """A recipe as a text.

    Either the name of one in :mod:`stoic.recipes` that needs nothing but the domain, or ``robust``,
    perhaps with arguments that are literals: ``rgp_ucb(budget=5)``. Or ``FILE.py:FUNCTION``, a
    function from a domain to a learner, which may have what a text cannot: a prior, a grid.

    Attributes
    ----------
    text:
        The text as given, without needless blanks.
    directory:
        Base of a relative path of a file.
    """

    text: str
    directory: Path = field(default=Path(), compare=False)

    @staticmethod
    def parse(text: str, directory: Path = Path()) -> Written:
        """Read a text; a file is not opened.

        Raises
        ------
        Refusal
            If it is none of the forms, if there is no recipe of that name, or if the recipe does
            not have such arguments or needs what a text cannot express.
        """
        written = Written(text.strip(), directory)
        if len(text) > _LONGEST:
            raise Refusal(
                f"A recipe has at most {_LONGEST} letters, got {len(text)} that begin with "
                f"{text[:40]!r}."
            )
        if written.in_file:
            return written
        if re.search(r"\.py\b", text):
            raise Refusal(f"Which function is missing in the recipe {text!r}: FILE.py:FUNCTION.")
        name, arguments = _call(text)
        _check(name, arguments)
        literals = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        return Written(f"{name}({literals})" if literals else name, directory)

    @property
    def in_file(self) -> bool:
        """True if the recipe is a function in a file."""
        return _IN_A_FILE.fullmatch(self.text) is not None

    def load(self) -> Recipe:
        """Return the recipe; this runs the file, if it is in one.

        Raises
        ------
        Refusal
            If there is no such file or function, or the file raises. The recipe raises one, too,
            if it cannot make a learner on a domain.
        """
        if (found := _IN_A_FILE.fullmatch(self.text)) is not None:
            function = _function(self.directory / found["file"], found["function"])
            return lambda domain: self._checked(function, domain, {})
        name, arguments = _call(self.text)
        return lambda domain: self._checked(_NAMED[name], domain, arguments)

    def _checked(
        self, function: Callable[..., object], domain: Domain, arguments: dict[str, Any]
    ) -> Learner | Balanced:
        try:
            made = function(domain, **arguments)
        except Exception as error:
            kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
            raise Refusal(f"The recipe {self.text} cannot be used: {kind}{error}") from error
        if not isinstance(made, Learner | Balanced):
            raise Refusal(
                f"The recipe {self.text} returned {made!r}: a function from a domain to a learner "
                "is needed."
            )
        return made


def stored_recipe(study: Study) -> str | None:
    """Return the text of the recipe that is recorded with a study; None if there is none."""
    text = study.user_attrs.get(RECIPE)
    return text if isinstance(text, str) else None


def record_recipe(study: Study, written: Written) -> None:
    """Record a recipe with a study, in the place of an earlier one."""
    if stored_recipe(study) != written.text:
        study.set_user_attr(RECIPE, written.text)


def recipe_to_look_with(study: Study) -> tuple[Recipe, str | None]:
    """Return the recipe of a study, and if it is not the recorded one, why not.

    A file that is named in a storage is not run: whoever may write to a storage may not run
    programs here.
    """
    text = stored_recipe(study)
    if text is None:
        return recipes.robust, None
    try:
        written = Written.parse(text)
    except Refusal as refusal:
        instead = f"What follows is what robust believes, not the study's recipe: {refusal}"
        return recipes.robust, instead
    if written.in_file:
        return recipes.robust, (
            f"What follows is what robust believes. The study's recipe is {text}, and a file is "
            "not run only because a storage names it: give it as --recipe, or recipe=."
        )
    return written.load(), None


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
    _, *others = signature
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


def _function(path: Path, name: str) -> Callable[..., object]:
    """Return a function of a file, after running the file."""
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
    function = getattr(module, name, None)
    if not callable(function):
        public = [key for key, value in vars(module).items() if callable(value)]
        raise Refusal(f"There is no function {name!r} in {path}: {_meant(name, public)}")
    found: Callable[..., object] = function
    return found
