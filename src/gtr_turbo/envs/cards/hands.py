"""Cards, and how hands are dealt from a seeded generator."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import final

import numpy as np

from gtr_turbo.envs.cards.rules import CardRules
from gtr_turbo.errors import ConfigError

SUITS = "HSDC"
_FACES = {1: "A", 11: "J", 12: "Q", 13: "K"}
_TEN = 10


@final
@dataclass(frozen=True, slots=True)
class Card:
    """A playing card."""

    rank: int
    """1 is the ace, 11 to 13 are J, Q, K."""
    suit: str
    """One of H S D C."""

    @property
    def face(self) -> str:
        """What is printed on it: A, 2 … 10, J, Q or K."""
        return _FACES.get(self.rank, str(self.rank))

    @property
    def name(self) -> str:
        """Face and suit, for example ``10D``."""
        return f"{self.face}{self.suit}"


Hand = tuple[Card, ...]


def rank_value(rank: int, rules: CardRules) -> int:
    """Return what a rank counts in a formula."""
    return min(rank, _TEN) if rules.face_cards_as_ten else rank


def hand_values(hand: Hand, rules: CardRules) -> tuple[int, ...]:
    """Return what the cards count, in table order."""
    return tuple(rank_value(card.rank, rules) for card in hand)


def deal(num_cards: int, rules: CardRules, generator: np.random.Generator) -> Hand:
    """Return one hand, solvable or not."""
    return _DEALS[rules.deal](num_cards, rules, generator)


def check_deal(
    num_cards: int, rules: CardRules, can_win: Callable[[tuple[int, ...]], bool]
) -> None:
    """Raise ConfigError when no hand can be dealt under the rules, or none that can be won.

    `can_win` says of the values of a hand whether it can be.
    """
    if rules.deal == "deck" and len(rules.ranks) * len(SUITS) < num_cards:
        raise ConfigError(f"{len(rules.ranks)} ranks don't make a deck for {num_cards} cards.")
    if rules.deal == "pairs":
        _check_pairs(num_cards, rules)
    values = sorted({rank_value(rank, rules) for rank in rules.ranks})
    if rules.only_solvable and not any(
        can_win(hand) for hand in combinations_with_replacement(values, num_cards)
    ):
        raise ConfigError(
            f"`only_solvable` is set, but no hand of the ranks {list(rules.ranks)} can be won.",
            hint="add ranks, raise the length limit, or change `target`.",
        )


def _check_pairs(num_cards: int, rules: CardRules) -> None:
    if num_cards != 2:  # noqa: PLR2004 - a pair
        raise ConfigError(
            f"`deal: pairs` needs a game of two cards, this one has {num_cards}.",
            hint="use `with_replacement` or `deck`.",
        )
    if not any(_partners(rank_value(rank, rules), rules) for rank in rules.ranks):
        raise ConfigError(
            f"no two of the ranks {list(rules.ranks)} add or multiply to {rules.target}.",
            hint="add ranks or change `target`.",
        )


def _deal_with_replacement(
    num_cards: int, rules: CardRules, generator: np.random.Generator
) -> Hand:
    ranks = generator.integers(len(rules.ranks), size=num_cards)
    suits = generator.integers(len(SUITS), size=num_cards)
    pairs = zip(ranks, suits, strict=True)
    return tuple(Card(rules.ranks[rank], SUITS[suit]) for rank, suit in pairs)


def _deal_deck(num_cards: int, rules: CardRules, generator: np.random.Generator) -> Hand:
    deck_size = len(rules.ranks) * len(SUITS)
    places = generator.choice(deck_size, size=num_cards, replace=False)
    return tuple(Card(rules.ranks[p // len(SUITS)], SUITS[p % len(SUITS)]) for p in places)


def _deal_pairs(num_cards: int, rules: CardRules, generator: np.random.Generator) -> Hand:
    """Deal as EZPoints does: a first card, then one that completes the target by sum or product.

    A first card that nothing completes is put back. Where both a sum and a product do, each is
    taken half of the time; the order on the table is random.
    """
    del num_cards  # `check_deal` made sure that it is two
    partners: list[int] = []
    first = 0
    while not partners:
        first = rules.ranks[generator.integers(len(rules.ranks))]
        partners = _partners(rank_value(first, rules), rules)
    ranks = [first, partners[generator.integers(len(partners))]]
    if generator.integers(2):
        ranks.reverse()
    suits = generator.integers(len(SUITS), size=2)
    return tuple(Card(rank, SUITS[suit]) for rank, suit in zip(ranks, suits, strict=True))


def _partners(value: int, rules: CardRules) -> list[int]:
    """Return the ranks that make the target with a card of this value: by product, by sum."""
    found = [rules.target // value] if rules.target % value == 0 else []
    found.append(rules.target - value)
    return [rank for rank in found if rank in rules.ranks and rank_value(rank, rules) == rank]


_DEALS: dict[str, Callable[[int, CardRules, np.random.Generator], Hand]] = {
    "with_replacement": _deal_with_replacement,
    "deck": _deal_deck,
    "pairs": _deal_pairs,
}
