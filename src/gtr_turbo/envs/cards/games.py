"""The card games themselves: how many cards, which operators, what words to use."""

from dataclasses import dataclass
from typing import final

from gtr_turbo.envs.cards.formula import EQUALS, NUMBERS
from gtr_turbo.envs.cards.rules import CardRules
from gtr_turbo.envs.cards.solver import Formula, is_solvable, solve

_TEN = 10


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CardGame:
    """One game: what no rule switch changes, and the defaults of the switches."""

    task_id: str
    num_cards: int
    operators: tuple[str, ...]
    """Operators that the solver may use."""
    brackets: tuple[str, ...]
    defaults: CardRules

    def actions(self, rules: CardRules) -> tuple[str, ...]:
        """Return the actions in the lineage's order: numbers, operators, brackets, ``=``."""
        largest = _TEN if rules.face_cards_as_ten else len(NUMBERS)
        return (*NUMBERS[:largest], *self.operators, *self.brackets, EQUALS)

    def plans(self, values: tuple[int, ...], rules: CardRules) -> list[Formula]:
        """Return every formula that wins a hand, without regard to the length limit."""
        plans: list[Formula] = []
        for part in _parts_in_play(values, rules):
            plans += solve(part, rules.target, self.operators)
        return plans

    def can_win(self, values: tuple[int, ...], rules: CardRules) -> bool:
        """Return whether a hand can be won within the length limit."""
        parts = _parts_in_play(values, rules)
        if not any(is_solvable(part, rules.target, self.operators) for part in parts):
            return False
        room = rules.max_steps - 1 if rules.length_limit == "steps" else rules.max_tokens
        if room >= longest_formula(len(values)):
            return True
        return any(len(plan) <= room for plan in self.plans(values, rules))


def longest_formula(num_cards: int) -> int:
    """Return the most tokens that a formula without needless brackets has.

    n numbers, n - 1 operators, and brackets around every operation but the last: 4n - 5.
    """
    return max(1, 4 * num_cards - 5)


def _parts_in_play(values: tuple[int, ...], rules: CardRules) -> list[tuple[int, ...]]:
    """Return the sets of cards that a winning formula may use, as sorted values."""
    hand = tuple(sorted(values))
    if rules.must_use_all_cards:
        return [hand]
    chosen = range(1, 2 ** len(hand))
    parts = {tuple(v for i, v in enumerate(hand) if mask >> i & 1) for mask in chosen}
    return sorted(parts)
