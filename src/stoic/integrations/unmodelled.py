"""What a study asks for that the model does not know: refused."""

from __future__ import annotations

from optuna.study import Study

from stoic.refusal import Refusal


def check_single_objective(study: Study) -> None:
    """Refuse a study with several objectives."""
    if len(study.directions) != 1:
        raise Refusal(
            f"The study {study.study_name!r} has {len(study.directions)} objectives: a study with "
            "one objective is needed."
        )
