"""Blackjack against a dealer who only follows rules, from a deck without end."""

from gtr_turbo.envs.blackjack.task import ENTRY

__all__ = ["ENTRY"]
