"""Recipe of a study: a value, a text that names one, or a function in a file."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from optuna.study import Study

from stoic import recipes
from stoic.balancing import Balanced, build
from stoic.domains import Domain
from stoic.integrations.recipe_text import read
from stoic.learner import Learner
from stoic.policies.base import Policy, Wrapper
from stoic.policies.satisficing import Satisficing
from stoic.recipes import Balancing, Parts
from stoic.refusal import RefusalError, meant
from stoic.user_file import run_file

# A value of stoic.recipes, or a function that may build a learner on a grid of the domain.
Recipe = Callable[[Domain], Parts | Balancing | Learner | Balanced]

RECIPE = "stoic:recipe"  # user attribute of a study: the text of its recipe

DEFAULT: Recipe = recipes.robust()

_IN_A_FILE = re.compile(r"(?P<file>.+\.py):(?P<function>[^\W\d]\w*)(\(\))?")
_UNSAID = "(...)"  # after the name of a recipe with arguments that a text cannot express
_LONGEST = 1000  # letters of a text


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
        RefusalError
            If there is no such file or function, or the file raises.
        """
        _ = self._found  # cached: the file is run once
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

    Either that of a value, see :func:`~stoic.integrations.recipe_text.read`, or
    ``FILE.py:FUNCTION``.

    Raises
    ------
    RefusalError
        If it is none of the forms, if there is no recipe of that name, or if the recipe does not
        have such arguments or needs what a text cannot express.
    """
    if len(text) > _LONGEST:
        raise RefusalError(
            f"A recipe has at most {_LONGEST} letters, got {len(text)} that begin with "
            f"{text[:40]!r}."
        )
    text = text.strip()
    if text.endswith(_UNSAID):
        raise RefusalError(
            f"{text} has what no text can express: give the recipe itself, or FILE.py:NAME."
        )
    if _IN_A_FILE.fullmatch(text):
        return InFile(text.removesuffix("()"), directory)
    if re.fullmatch(r".+\.py:\w+\(.+\)", text):
        raise RefusalError(
            f"A function in a file gets no arguments, unlike that of {text!r}: write another one "
            "there that calls it with them, and name that as FILE.py:FUNCTION."
        )
    if re.search(r"\.py\b", text):
        raise RefusalError(f"Which function is missing in the recipe {text!r}: FILE.py:FUNCTION.")
    return read(text)


def load(recipe: Recipe | str) -> Recipe:
    """Read a text, and run the file that it or a recipe is in."""
    found = _value(parse(recipe) if isinstance(recipe, str) else recipe)
    if isinstance(found, InFile):
        return found.load()
    if not callable(found):
        raise RefusalError(
            "A recipe is one of stoic.recipes, its name, or a function of the domain, got "
            f"{found!r}."
        )
    return found


def in_direction(policy: Policy, sign: float) -> Policy:
    """Return the policy with a threshold of the user's, which -1 for ``sign`` minimises, negated.

    It logs nothing itself: its numbers are those of what is maximised.
    """
    if isinstance(policy, Wrapper):
        return replace(policy, then=in_direction(policy.then, sign))
    if not isinstance(policy, Satisficing):
        return policy
    given = policy.threshold
    return replace(policy, threshold=given if isinstance(given, str) else sign * given, quiet=True)


def text_of(recipe: Recipe) -> str | None:
    """Text from which a recipe can be read again; None if there is none."""
    text = repr(recipe)
    try:
        return text if parse(text) == recipe else None
    except RefusalError:
        return None


def name_of(recipe: Recipe) -> str:
    """Return the text of a recipe, or its name and dots for arguments that have no text."""
    if (text := text_of(recipe)) is not None:
        return text
    writer = recipe.write if isinstance(recipe, recipes.Recipe) else recipe
    return getattr(writer, "__name__", type(writer).__name__) + _UNSAID


def build_learner(recipe: Recipe, domain: Domain) -> Learner | Balanced:
    """Build a recipe on a domain, or a grid of it.

    Raises
    ------
    RefusalError
        If the recipe has a text and cannot be built, or if it gives no learner.
    """
    try:
        made = recipe(domain)
        learner = build(domain, made) if isinstance(made, Parts | Balancing) else made
    except Exception as error:
        if not isinstance(recipe, recipes.Recipe | InFile):
            raise  # of a function of the caller, with its traceback
        # The message of a ValueError says enough by itself
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise RefusalError(f"The recipe {recipe!r} cannot be used: {kind}{error}") from error
    if not isinstance(learner, Learner | Balanced):
        raise RefusalError(
            f"The recipe {recipe!r} returned {learner!r}: a function from a domain to a learner "
            "is needed."
        )
    return learner


def stored_recipe(study: Study) -> str | None:
    """Return the text of the recipe that is recorded with a study; None if there is none."""
    text = study.user_attrs.get(RECIPE)
    return text if isinstance(text, str) else None


def replaces(recipe: Recipe, text: str | None) -> bool:
    """Return True if a recipe is, or may be, another one than that of a recorded text."""
    try:
        return text is None or parse(text) != recipe
    except RefusalError:
        return True


def record_recipe(study: Study, recipe: Recipe) -> None:
    """Record a recipe with a study, in the place of an earlier one; its name, if it has no text."""
    text, earlier = name_of(recipe), stored_recipe(study)
    if text != earlier and replaces(recipe, earlier):
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
    except RefusalError as refusal:
        return (
            DEFAULT,
            f"What follows is as robust judges, not the study's recipe: {refusal}",
        )
    if isinstance(recipe, InFile):
        return DEFAULT, (
            f"What follows is as robust judges. The study's recipe is {text}, and a file is "
            "not run only because a storage names it: give it as --recipe, or recipe=."
        )
    return recipe, None


def _value(found: object) -> object:
    """Return the recipe that a decorated function writes without arguments; others as they are."""
    if not (callable(found) and hasattr(found, "writes_a_recipe")):
        return found
    try:
        return found()
    except TypeError as error:
        raise RefusalError(f"{error} Give it as a recipe that has its arguments.") from error


def _from_file(path: Path, name: str) -> object:
    """Return a function or a recipe of a file, after running the file."""
    module = run_file(path, f"stoic_recipe_{path.stem}")
    found = _value(getattr(module, name, None))
    if not callable(found) and not isinstance(found, Parts | Balancing):
        public = [key for key, value in vars(module).items() if callable(value)]
        raise RefusalError(f"There is no function {name!r} in {path}: {meant(name, public)}")
    return found
