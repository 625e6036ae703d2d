from collections import Counter
from itertools import product
from typing import Any

import gymnasium
import pytest
from gymnasium.envs.toy_text import blackjack as peer

from gtr_turbo.envs.blackjack.rules import (
    SHOE_SIZE,
    BlackjackRules,
    Count,
    count,
    draw_shoe,
    is_natural,
    settle,
)
from gtr_turbo.envs.cards.hands import Card, Hand
from gtr_turbo.envs.episodes import make_generator
from gtr_turbo.envs.rules import read_rules
from gtr_turbo.errors import ConfigError


def hand(*ranks: int) -> Hand:
    return tuple(Card(rank, "S") for rank in ranks)


@pytest.mark.parametrize(
    ("ranks", "total", "usable_ace"),
    [
        ((1, 13), 21, True),
        ((1, 1), 12, True),
        ((1, 5, 5), 21, True),
        ((1, 5, 6), 12, False),
        ((11, 12, 2), 22, False),
        ((1, 1, 13, 12), 22, False),
        ((2,), 2, False),
        ((1,) * 21, 21, False),
    ],
)
def test_what_hands_count(ranks: tuple[int, ...], total: int, usable_ace: bool) -> None:
    assert count(hand(*ranks)) == Count(total, usable_ace)


def test_hands_count_as_in_gymnasium() -> None:
    """All hands of up to three values, and card by card."""
    for num_cards in range(1, 4):
        for values in product(range(1, 11), repeat=num_cards):
            cards = hand(*values)
            own = count(cards)
            assert own == Count(peer.sum_hand(values), bool(peer.usable_ace(values)))
            assert own.is_bust == peer.is_bust(values)
            assert is_natural(cards) == peer.is_natural(values)
            assert count(cards[:-1]).plus(values[-1]) == own


@pytest.mark.parametrize("natural", ["plain", "bonus", "wins"])
def test_hands_end_as_in_gymnasium(natural: str) -> None:
    """The same generator deals to both; hits are chosen by another one."""
    is_book, has_bonus = natural == "wins", natural == "bonus"
    env: Any = gymnasium.make("Blackjack-v1", sab=is_book, natural=has_bonus).unwrapped
    rules = read_rules(BlackjackRules(), {"natural": natural})
    choices = make_generator(99)
    rewards: Counter[float] = Counter()
    for seed in range(400):
        shoe = draw_shoe(make_generator(seed))
        env.reset(seed=seed)
        env.np_random = make_generator(seed)
        env.dealer = peer.draw_hand(env.np_random)
        env.player = peer.draw_hand(env.np_random)
        end, terminated, reward = 4, False, 0.0
        while not terminated:
            assert env._get_obs()[0] == count(shoe[2:end]).total
            is_hit = int(choices.integers(3)) > 0 and count(shoe[2:end]).total < 20
            _, reward, terminated, _, _ = env.step(int(is_hit))
            end += is_hit
        ending = settle(shoe[2:end], shoe[:2], shoe[end:], rules)
        assert ending.reward == reward
        assert ending.won == (reward > 0)
        assert [min(card.rank, 10) for card in ending.dealer] == env.dealer
        rewards[reward] += 1
    assert set(rewards) == {-1.0, 0.0, 1.0} | ({1.5} if natural == "bonus" else set())


def test_the_dealer_stands_on_every_seventeen() -> None:
    rest = hand(4, 10, 10)
    soft = settle(hand(10, 8), hand(1, 6), rest, BlackjackRules())
    assert (soft.dealer, soft.won) == (hand(1, 6), True)
    hard = settle(hand(10, 8), hand(10, 6), rest, BlackjackRules())
    assert (hard.dealer, hard.reward) == (hand(10, 6, 4), -1)


def test_the_dealer_takes_nothing_when_the_player_is_over() -> None:
    ending = settle(hand(10, 8, 5), hand(2, 2), hand(10, 10), BlackjackRules())
    assert (ending.dealer, ending.reward, ending.won) == (hand(2, 2), -1, False)


def test_equal_sums_are_a_draw() -> None:
    ending = settle(hand(10, 9), hand(13, 9), (), BlackjackRules(reward_draw=0.25))
    assert (ending.reward, ending.won) == (0.25, False)


@pytest.mark.parametrize(
    ("natural", "dealer", "reward"),
    [
        ("plain", (10, 9), 1),
        ("bonus", (10, 9), 1.5),
        ("wins", (10, 9), 1),
        ("plain", (5, 6, 10), 0),
        ("bonus", (5, 6, 10), 0),
        ("wins", (5, 6, 10), 1),
        ("wins", (1, 13), 0),
    ],
)
def test_what_a_natural_is_worth(natural: str, dealer: tuple[int, ...], reward: float) -> None:
    rules = read_rules(BlackjackRules(), {"natural": natural})
    cards = hand(*dealer)
    assert settle(hand(1, 12), cards[:2], cards[2:], rules).reward == reward


def test_twenty_one_in_three_cards_is_no_natural() -> None:
    ending = settle(hand(5, 6, 10), hand(10, 9), (), BlackjackRules(natural="bonus"))
    assert ending.reward == 1


def test_a_deck_without_end() -> None:
    """500 shoes of 40: each rank but tens 1/13 of 20,000 = 1,538 (deviation 38), a face 2,051."""
    cards = [card for seed in range(500) for card in draw_shoe(make_generator(seed))]
    ranks = Counter(card.rank for card in cards)
    assert len(cards) == 20_000
    assert set(ranks) == {*range(1, 10), 11, 12, 13}
    assert all(abs(ranks[rank] - 1_538) < 190 for rank in range(1, 10))
    assert all(abs(ranks[rank] - 2_051) < 215 for rank in (11, 12, 13))
    assert {card.suit for card in cards} == set("HSDC")


def test_no_hand_needs_more_than_a_shoe() -> None:
    """The longest: 21 aces, against a dealer's 2 2 1 … 1 and one card more."""
    player = hand(*(1,) * 21)
    assert count(player).total == 21
    dealer = hand(2, 2)
    rest = hand(*(1,) * 12, 13)
    assert len(settle(player, dealer, rest, BlackjackRules()).dealer) <= 17
    assert len(player) + 17 <= SHOE_SIZE


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"natural": True}, "rule `natural`"),
        ({"max_steps": 0}, "rule `max_steps`"),
        ({"reward_win": -2}, r"must not decrease in this order, got -1\.0, 0\.0, -2\.0 and 1\.5"),
        ({"reward_natural": 0.5}, "must not decrease"),
        ({"picture": "lineage"}, "rule `picture`"),
    ],
)
def test_bad_values_are_refused(rules: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_rules(BlackjackRules(), rules)
