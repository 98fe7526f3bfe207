"""Where to look next."""

from stoic.policies.base import Band, Policy, View
from stoic.policies.initial import Initial
from stoic.policies.ucb import UCB, UpperBound

POLICIES = (UCB, Initial)

__all__ = ["POLICIES", "UCB", "Band", "Initial", "Policy", "UpperBound", "View"]
