"""A number line: the picture shows two numbers, steps of one lead from the one to the other."""

from gtr_turbo.envs.numberline.task import ENTRY

__all__ = ["ENTRY"]
