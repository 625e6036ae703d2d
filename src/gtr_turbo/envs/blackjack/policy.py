"""The best play against the dealer, by dynamic programming, and plays that are worse.

From a deck without end every card is as likely as ever, so all that matters is the player's count
and the dealer's up-card. Values are expected rewards of a hand, without discount.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final, final

from gtr_turbo.envs.blackjack.rules import (
    ACE,
    DEALER_STANDS_AT,
    HIT,
    LIMIT,
    NUM_RANKS,
    STAND,
    TEN,
    BlackjackRules,
    Count,
)

CARD_CHANCES: Final = {value: (4 if value == TEN else 1) / NUM_RANKS for value in range(1, TEN + 1)}
"""Value of a card → how likely it is."""

Play = Callable[[Count, int], str]
"""Returns the action for the player's count and the value of the dealer's up-card."""

_BUST: Final = 0
"""Stands for every dealer's total above 21: less than any total that stands."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """Expected rewards of both actions."""

    stand: float
    hit: float

    @property
    def best_action(self) -> str:
        """The action that is worth more; standing where both are equal."""
        return HIT if self.hit > self.stand else STAND

    @property
    def best(self) -> float:
        """What the better action is worth."""
        return max(self.stand, self.hit)


def best_play(rules: BlackjackRules) -> Play:
    """Return the play that earns most on average; it does not look at the step limit."""
    return lambda own, up_card: worth(own, up_card, rules).best_action


def worth(own: Count, up_card: int, rules: BlackjackRules) -> Worth:
    """Return what both actions are worth; a natural counts as plain 21 here.

    (What a natural earns extra never changes an action: 21 stands in any case.)
    """
    return _worth(own, up_card, (rules.reward_win, rules.reward_draw, rules.reward_loss))


def expected_return(rules: BlackjackRules) -> float:
    """Return what a hand earns on average under the best play, before it is dealt."""
    total = 0.0
    for up_card, up_chance in CARD_CHANCES.items():
        for first, first_chance in CARD_CHANCES.items():
            for second, second_chance in CARD_CHANCES.items():
                own = _EMPTY.plus(first).plus(second)
                value = worth(own, up_card, rules).best
                if {first, second} == {ACE, TEN}:
                    value = _natural_worth(up_card, rules)
                total += up_chance * first_chance * second_chance * value
    return total


def dealer_chances(up_card: int) -> dict[int, float]:
    """Return how likely each final total of the dealer is; 0 stands for more than 21."""
    return dict(_dealer_chances(_EMPTY.plus(up_card)))


def threshold_play(threshold: int) -> Play:
    """Return the play that hits below a total and stands from it on, whatever the dealer shows."""
    return lambda own, up_card: HIT if own.total < threshold else STAND


_EMPTY: Final = Count(0, usable_ace=False)


@cache
def _dealer_chances(hand: Count) -> tuple[tuple[int, float], ...]:
    if hand.is_bust:
        return ((_BUST, 1.0),)
    if hand.total >= DEALER_STANDS_AT:
        return ((hand.total, 1.0),)
    chances: dict[int, float] = {}
    for value, card_chance in CARD_CHANCES.items():
        for total, chance in _dealer_chances(hand.plus(value)):
            chances[total] = chances.get(total, 0.0) + card_chance * chance
    return tuple(sorted(chances.items()))


@cache
def _worth(own: Count, up_card: int, rewards: tuple[float, float, float]) -> Worth:
    win, draw, loss = rewards
    stand = 0.0
    for total, chance in dealer_chances(up_card).items():
        reward = draw if total == own.total else (win if total < own.total else loss)
        stand += chance * reward
    hit = 0.0
    for after, chance in _next_counts(own):
        hit += chance * (loss if after.is_bust else _worth(after, up_card, rewards).best)
    return Worth(stand=stand, hit=hit)


def _next_counts(own: Count) -> Iterator[tuple[Count, float]]:
    for value, chance in CARD_CHANCES.items():
        yield own.plus(value), chance


def _natural_worth(up_card: int, rules: BlackjackRules) -> float:
    """Return what standing on a natural is worth."""
    chances = dealer_chances(up_card)
    if rules.natural == "wins":
        completing = {ACE: TEN, TEN: ACE}.get(up_card)
        draws = 0.0 if completing is None else CARD_CHANCES[completing]
    else:
        draws = chances.get(LIMIT, 0.0)
    win = rules.reward_natural if rules.natural == "bonus" else rules.reward_win
    return draws * rules.reward_draw + (1 - draws) * win
