"""The rule switches of blackjack, what hands count, and how a hand ends.

Names of the game: the dealer's *up-card* is the first, the only one shown; an ace is *usable* where
it can count 11 without exceeding 21, and then it does; a *natural* is an ace with a ten in the
first two cards.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal, final

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from gtr_turbo.envs.cards.hands import SUITS, Card, Hand

STAND: Final = "stand"
HIT: Final = "hit"
ACTIONS: Final = (STAND, HIT)
"""Every action, in the lineage's order."""
LIMIT: Final = 21
"""More than this is lost at once."""
DEALER_STANDS_AT: Final = 17
"""The dealer takes cards below it and none from it on, with a usable ace or without."""
NUM_RANKS: Final = 13
TEN: Final = 10
ACE: Final = 1
ACE_BONUS: Final = 10
"""What a usable ace counts beyond its 1."""
SHOE_SIZE: Final = 40
"""No hand needs more: the player has 21 cards at most when standing (21 aces), the dealer 17 (16
points, none below an ace, and one card more)."""


_CARDS: Final = tuple(Card(rank, suit) for rank in range(NUM_RANKS + 1) for suit in SUITS)
"""Every card at rank · 4 + suit; those of rank 0 are never dealt."""


@final
class BlackjackRules(BaseModel):
    """Everything about blackjack that can be switched."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    natural: Literal["plain", "bonus", "wins"] = "plain"
    """What a natural is worth: `plain`: 21 like any other; `bonus`: a hand won with it earns
    `reward_natural`; `wins`: it wins unless the dealer has one too (Sutton and Barto)."""

    unreadable_reply: Literal["illegal", "random_action"] = "illegal"
    """A reply without an action changes nothing, or is replaced by a random action, counted."""
    max_steps: Annotated[int, Field(ge=1)] = 20
    """The step that truncates. Twenty suffice for every hand: 19 hits of aces, then the end."""
    end_at_first_penalty: bool = False
    """The first negative reward ends the episode: early truncation, for training only."""

    reward_win: float = 1.0
    """For a won hand."""
    reward_draw: float = 0.0
    """For equal sums."""
    reward_loss: float = -1.0
    """For a lost hand."""
    reward_natural: float = 1.5
    """For a hand won with a natural under `natural: bonus`."""
    reward_illegal: float = -1.0
    """For an unreadable reply."""

    picture: Literal["table", "compact"] = "table"
    """`table`: 300 × 300 pixels as in the lineage; `compact`: cells of 28 × 28 pixels."""
    prompt: Literal["full", "compact"] = "full"
    """`full`: role, rules and template; `compact`: a few words, for tiny models."""

    advice: bool = False
    """Whether `Observation.advice` tells what the solver says, for a teacher; never the prompt."""

    @model_validator(mode="after")
    def _check_rewards(self) -> "BlackjackRules":
        if not self.reward_loss <= self.reward_draw <= self.reward_win <= self.reward_natural:
            raise ValueError(
                "`reward_loss`, `reward_draw`, `reward_win` and `reward_natural` must not decrease "
                f"in this order, got {self.reward_loss}, {self.reward_draw}, {self.reward_win} and "
                f"{self.reward_natural}."
            )
        return self


@final
@dataclass(frozen=True, slots=True)
class Count:
    """What a hand counts."""

    total: int
    """The sum; a usable ace counts 11."""
    usable_ace: bool

    def plus(self, value: int) -> "Count":
        """Return the count with one more card of this value, 1 to 10."""
        hard = self.total - ACE_BONUS * self.usable_ace + value
        has_ace = self.usable_ace or value == ACE
        usable = has_ace and hard + ACE_BONUS <= LIMIT
        return Count(hard + ACE_BONUS * usable, usable)

    @property
    def is_bust(self) -> bool:
        """Whether it exceeds 21."""
        return self.total > LIMIT


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a hand ends."""

    dealer: Hand
    """The dealer's hand, with what was drawn in the end."""
    reward: float
    won: bool


def card_value(card: Card) -> int:
    """Return what a card counts: 1 for an ace, 10 for J, Q and K."""
    return min(card.rank, TEN)


def count(hand: Sequence[Card]) -> Count:
    """Return what a hand counts.

    An ace that became hard stays so, whatever follows: sums only grow.
    """
    hard = sum(card_value(card) for card in hand)
    usable = any(card.rank == ACE for card in hand) and hard + ACE_BONUS <= LIMIT
    return Count(hard + ACE_BONUS * usable, usable)


def is_natural(hand: Sequence[Card]) -> bool:
    """Return whether a hand is an ace and a ten."""
    return sorted(card_value(card) for card in hand) == [ACE, TEN]


def draw_shoe(generator: np.random.Generator) -> Hand:
    """Return the cards of an episode in the order in which they will be dealt.

    Each of the 13 ranks is equally likely, whatever was dealt before; tens show J, Q or K.
    """
    ranks = generator.integers(1, NUM_RANKS + 1, size=SHOE_SIZE)
    faces = generator.integers(TEN + 1, NUM_RANKS + 1, size=SHOE_SIZE)
    suits = generator.integers(len(SUITS), size=SHOE_SIZE)
    places = np.where(ranks >= TEN, faces, ranks) * len(SUITS) + suits
    return tuple(_CARDS[place] for place in places.tolist())


def settle(player: Hand, dealer: Hand, rest: Sequence[Card], rules: BlackjackRules) -> Ending:
    """Return how a hand ends when the player stands, or has just exceeded 21.

    `rest` are the cards to come; the dealer takes none when the player has exceeded 21.
    """
    own = count(player)
    if own.is_bust:
        return Ending(dealer=dealer, reward=rules.reward_loss, won=False)
    num_drawn = 0
    while count((*dealer, *rest[:num_drawn])).total < DEALER_STANDS_AT:
        num_drawn += 1
    dealer = (*dealer, *rest[:num_drawn])
    other = count(dealer)
    wins_outright = rules.natural == "wins" and is_natural(player) and not is_natural(dealer)
    if other.is_bust or own.total > other.total or wins_outright:
        has_bonus = rules.natural == "bonus" and is_natural(player)
        reward = rules.reward_natural if has_bonus else rules.reward_win
        return Ending(dealer=dealer, reward=reward, won=True)
    reward = rules.reward_draw if own.total == other.total else rules.reward_loss
    return Ending(dealer=dealer, reward=reward, won=False)
