"""The pages of the API, one for each part of the library, from its docstrings."""

from __future__ import annotations

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from stoic.recipes import RECIPES

# The families of recipes in their order; of these the recipes alone are shown.
FAMILIES = dict.fromkeys(r.__module__.removeprefix("stoic.").replace(".", "/") for r in RECIPES)
# Page: title, and modules, or folders of which all modules are shown.
PAGES = {
    "recipes": ("Recipes", [*FAMILIES]),
    "learner": (
        "Learner and model",
        [
            "learner",
            "objectives",
            "balancing",
            "pareto",
            "data",
            "models",
            "posteriors",
        ],
    ),
    "domains": ("Domains and kernels", ["domains", "kernels"]),
    "defences": ("Defences", ["defences"]),
    "confidence": ("Confidence", ["confidence", "theory"]),
    "policies": ("Policies", ["policies"]),
    "moved": ("Moved inputs", ["distances", "satisficing"]),
    "world": ("The world", ["environment", "simulate", "adversaries", "problems"]),
    # Each shows what it exports, wherever that is defined.
    "integrations": (
        "Integrations",
        [
            f"integrations/{x}"
            for x in ("optuna", "retrying", "sklearn", "botorch", "mlflow", "wandb")
        ],
    ),
    "tuning": ("Tuning", ["tuning/function", "tuning/measured", "tuning/program"]),
}

EXPORTING = ("integrations/optuna",)  # a folder of which only what it exports is shown


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    source = Path(config.docs_dir).parent / "src"
    for name, (title, parts) in PAGES.items():
        modules = [module for part in parts for module in _modules(source, part)]
        text = "\n\n".join([f"# {title}", *map(_section, modules)])
        files.append(File.generated(config, f"api/{name}.md", content=f"{text}\n"))
    return files


def _modules(source: Path, part: str) -> list[str]:
    """List the modules of a part, by their full names."""
    if part in EXPORTING:
        return [f"stoic.{part.replace('/', '.')}"]
    path = source / "stoic" / part
    found = sorted(path.rglob("[a-z]*.py")) if path.is_dir() else [path.with_suffix(".py")]
    return [".".join(module.relative_to(source).with_suffix("").parts) for module in found]


def _section(module: str) -> str:
    options = "heading_level: 3"
    if shown := [recipe.__name__ for recipe in RECIPES if recipe.__module__ == module]:
        options += f", members: [{', '.join(shown)}]"
    return f"## {module}\n\n::: {module}\n    options: {{{options}}}"
