"""Studies as a storage holds them, without running anything."""

from optuna.trial import TrialState, create_trial


def add(study, params, space, value=None, attrs=None, *, state=None, system=None, reported=None):
    """Store a trial: without a value it failed; values are one for each objective."""
    study.add_trial(
        create_trial(
            state=state or (TrialState.FAIL if value is None else TrialState.COMPLETE),
            values=[value] if isinstance(value, (int, float)) else value,
            params=params,
            distributions={name: space[name] for name in params},
            user_attrs=attrs,
            system_attrs=system,
            intermediate_values=reported,
        )
    )
