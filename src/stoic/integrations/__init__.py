"""Adapters to Optuna, BoTorch and scikit-learn. Only the user's loop imports from here."""


def __dir__() -> list[str]:
    return ["__doc__", "botorch", "optuna", "sklearn"]
