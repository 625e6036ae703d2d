"""A house to do chores in, with ALFWorld's semantics and schematic pictures."""

from gtr_turbo.envs.household.task import ENTRY

__all__ = ["ENTRY"]
