from collections import Counter
from typing import Any

import numpy as np
import pytest

from gtr_turbo.envs.cards.hands import Card, check_deal, deal, hand_values, rank_value
from gtr_turbo.envs.cards.rules import CardRules
from gtr_turbo.errors import ConfigError

PAIRS = CardRules(target=12, deal="pairs", ranks=tuple(range(2, 14)))


def test_names_of_cards() -> None:
    assert [Card(rank, "H").face for rank in (1, 2, 9, 10, 11, 12, 13)] == [
        "A", "2", "9", "10", "J", "Q", "K",
    ]  # fmt: skip
    assert Card(10, "D").name == "10D"


def test_values_of_faces() -> None:
    hand = (Card(1, "H"), Card(10, "S"), Card(11, "D"), Card(13, "C"))
    assert hand_values(hand, CardRules()) == (1, 10, 10, 10)
    assert hand_values(hand, CardRules(face_cards_as_ten=False)) == (1, 10, 11, 13)
    assert rank_value(12, CardRules()) == 10


@pytest.mark.parametrize("rules", [CardRules(), CardRules(deal="deck")], ids=lambda r: r.deal)
def test_a_seed_gives_one_hand(rules: CardRules) -> None:
    hands = [deal(4, rules, np.random.default_rng(seed)) for seed in (1, 1, 2)]
    assert hands[0] == hands[1] != hands[2]


def test_dealing_with_replacement_is_uniform() -> None:
    generator = np.random.default_rng(0)
    cards = [card for _ in range(3_250) for card in deal(4, CardRules(), generator)]
    ranks = Counter(card.rank for card in cards)
    suits = Counter(card.suit for card in cards)
    # 1,000 of each rank are expected, standard deviation 30; 3,250 of each suit, 49.
    assert set(ranks) == set(range(1, 14))
    assert all(abs(count - 1_000) < 5 * 30 for count in ranks.values())
    assert set(suits) == set("HSDC")
    assert all(abs(count - 3_250) < 5 * 49 for count in suits.values())


def test_only_with_replacement_deals_a_card_twice() -> None:
    generator = np.random.default_rng(0)
    rules = CardRules(ranks=(3,))
    assert any(len(set(deal(4, rules, generator))) < 4 for _ in range(50))
    deck = CardRules(ranks=(3,), deal="deck")
    for _ in range(50):
        assert {card.name for card in deal(4, deck, generator)} == {"3H", "3S", "3D", "3C"}


def test_ranks_limit_the_deck() -> None:
    generator = np.random.default_rng(0)
    rules = CardRules(ranks=(1, 7), deal="deck")
    seen = {card.rank for _ in range(50) for card in deal(4, rules, generator)}
    assert seen == {1, 7}


def test_pairs_follow_the_lineages_table() -> None:
    """First value 2, 3, 4, 6: product or sum, half and half; 5, 7, 8, 9, 10 and faces: the sum."""
    generator = np.random.default_rng(0)
    rounds = 6_000
    hands = [hand_values(deal(2, PAIRS, generator), PAIRS) for _ in range(rounds)]
    counts = Counter(tuple(sorted(hand)) for hand in hands)
    # P(first = v) = 1/12 for 2 … 9, 4/12 for 10.
    expected = {
        (2, 6): 1 / 24 + 1 / 24,  # 2 then 12/2; 6 then 12/6
        (6, 6): 1 / 24,  # 6 then 12 - 6
        (2, 10): 1 / 24 + 4 / 12,  # 2 then 12 - 2; ten or face then 2
        (3, 4): 1 / 24 + 1 / 24,
        (3, 9): 1 / 24 + 1 / 12,
        (4, 8): 1 / 24 + 1 / 12,
        (5, 7): 1 / 12 + 1 / 12,
    }
    assert sum(expected.values()) == pytest.approx(1)
    assert set(counts) == set(expected)
    for pair, share in expected.items():
        deviation = (rounds * share * (1 - share)) ** 0.5
        assert abs(counts[pair] - rounds * share) < 5 * deviation
    first_is_larger = sum(a > b for a, b in hands) / sum(a != b for a, b in hands)
    assert abs(first_is_larger - 0.5) < 0.035


def test_a_first_card_without_partner_is_put_back() -> None:
    rules = CardRules(target=24, deal="pairs", ranks=(3, 5, 8), face_cards_as_ten=False)
    generator = np.random.default_rng(0)
    hands = {tuple(sorted(hand_values(deal(2, rules, generator), rules))) for _ in range(50)}
    assert hands == {(3, 8)}


@pytest.mark.parametrize(
    ("num_cards", "rules", "message"),
    [
        (4, {"deal": "pairs"}, "needs a game of two cards, this one has 4"),
        (2, {"deal": "pairs", "target": 500}, "no two of the ranks .* add or multiply to 500"),
        (2, {"deal": "pairs", "target": 12, "ranks": (5, 8)}, r"no two of the ranks \[5, 8\]"),
        (5, {"deal": "deck", "ranks": (5,)}, "1 ranks don't make a deck for 5 cards"),
        (4, {"only_solvable": True, "ranks": (1,)}, r"no hand of the ranks \[1\] can be won"),
    ],
)
def test_impossible_deals_are_refused(num_cards: int, rules: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_deal(num_cards, CardRules(**rules), lambda values: sum(values) == 24)


def test_possible_deals_are_accepted() -> None:
    check_deal(2, PAIRS, lambda _: False)
    check_deal(4, CardRules(only_solvable=True), lambda values: sum(values) == 24)
    check_deal(4, CardRules(deal="deck", ranks=(5,)), lambda _: False)
    assert deal(2, PAIRS, np.random.default_rng(0))
