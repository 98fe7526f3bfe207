from stoic.integrations.optuna import StoicSampler, explain

__all__ = ["StoicSampler", "explain"]
