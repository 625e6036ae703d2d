"""Means over the turns of many batches of different size."""

from typing import final


@final
class TurnMeans:
    """Running means of named numbers, each batch counted by its turns."""

    def __init__(self) -> None:
        self._turns: dict[str, int] = {}
        self._totals: dict[str, float] = {}

    def add(self, num_turns: int, **means: float) -> None:
        """Take in the means of a batch. A name may be missing in some batches."""
        for name, mean in means.items():
            self._totals[name] = self._totals.get(name, 0.0) + num_turns * mean
            self._turns[name] = self._turns.get(name, 0) + num_turns

    def means(self) -> dict[str, float]:
        """Return the mean of each name over the turns that had it."""
        return {name: total / self._turns[name] for name, total in self._totals.items()}
