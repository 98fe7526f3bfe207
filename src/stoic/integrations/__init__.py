"""Adapters to Optuna, BoTorch and scikit-learn. Only the user's loop imports from here."""
