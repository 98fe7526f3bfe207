"""Bayesian optimization that keeps working when its data lie."""
