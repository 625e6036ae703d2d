"""Facts of basic strategy and published chances, and a simulation of the whole game."""

import numpy as np
import pytest

from gtr_turbo.envs.blackjack.policy import (
    CARD_CHANCES,
    Play,
    best_play,
    dealer_chances,
    expected_return,
    threshold_play,
    worth,
)
from gtr_turbo.envs.blackjack.rules import BlackjackRules, Count, count, draw_shoe, settle
from gtr_turbo.envs.blackjack.rules import card_value as value_of
from gtr_turbo.envs.episodes import make_generator

RULES = BlackjackRules()
PLAY = best_play(RULES)


def stands_from(up_card: int, *, usable_ace: bool) -> int:
    """Return the least total from which the best play stands."""
    totals = range(12 if usable_ace else 4, 22)
    actions = [PLAY(Count(total, usable_ace), up_card) for total in totals]
    first = actions.index("stand")
    assert actions == ["hit"] * first + ["stand"] * (len(actions) - first)
    return totals[first]


def test_hard_totals_follow_basic_strategy() -> None:
    """Without doubling: 13 stands against 2 and 3, 12 against 4 to 6, 17 against the others."""
    least = {up_card: stands_from(up_card, usable_ace=False) for up_card in range(1, 11)}
    assert least == {1: 17, 2: 13, 3: 13, 4: 12, 5: 12, 6: 12, 7: 17, 8: 17, 9: 17, 10: 17}


def test_soft_totals_follow_basic_strategy() -> None:
    """Soft 18 stands, but against 9, 10 and (with many decks) an ace."""
    least = {up_card: stands_from(up_card, usable_ace=True) for up_card in range(1, 11)}
    assert least == {up_card: 19 if up_card in (1, 9, 10) else 18 for up_card in range(1, 11)}


def test_chances_are_chances() -> None:
    assert sum(CARD_CHANCES.values()) == pytest.approx(1)
    for up_card in range(1, 11):
        chances = dealer_chances(up_card)
        assert sum(chances.values()) == pytest.approx(1)
        assert set(chances) == {0, 17, 18, 19, 20, 21}


@pytest.mark.parametrize(
    ("up_card", "bust"),
    # How often the dealer exceeds 21, infinite deck, standing on all 17, nothing known of the hole.
    [(1, 0.1153), (2, 0.3536), (5, 0.4164), (6, 0.4232), (7, 0.2623), (10, 0.2121)],
)
def test_the_dealers_published_chances(up_card: int, bust: float) -> None:
    assert dealer_chances(up_card)[0] == pytest.approx(bust, abs=1e-3)


def test_values_worked_out_by_hand() -> None:
    """Standing on less than 17 wins exactly when the dealer exceeds 21; hitting 21 hard is lost."""
    for up_card in range(1, 11):
        bust = dealer_chances(up_card)[0]
        for total in (4, 12, 16):
            assert worth(Count(total, False), up_card, RULES).stand == pytest.approx(2 * bust - 1)
        assert worth(Count(21, False), up_card, RULES).hit == pytest.approx(-1)
        twenty = worth(Count(20, False), up_card, RULES)
        after = worth(Count(21, False), up_card, RULES).best
        assert twenty.hit == pytest.approx(-12 / 13 + after / 13)


def test_the_best_play_keeps_to_the_rewards() -> None:
    """Soft 17 against 7 is hit for a win, but stands where a draw is as good as one."""
    own = Count(17, usable_ace=False)
    lenient = BlackjackRules(reward_draw=1.0)
    assert worth(own, 10, lenient).stand == pytest.approx(
        worth(own, 10, RULES).stand + dealer_chances(10)[17]
    )
    assert PLAY(Count(17, usable_ace=True), 7) == "hit"
    assert best_play(lenient)(Count(17, usable_ace=True), 7) == "stand"


def test_the_expected_returns() -> None:
    """Twice the chance of a natural against no 21 is what the bonus of one half adds up to."""
    plain = expected_return(RULES)
    assert plain == pytest.approx(-0.046556, abs=1e-6)
    chances = [dealer_chances(up_card)[21] * CARD_CHANCES[up_card] for up_card in CARD_CHANCES]
    natural_wins = 2 * 4 / 13**2 * (1 - sum(chances))
    bonus = expected_return(BlackjackRules(natural="bonus"))
    assert bonus - plain == pytest.approx(0.5 * natural_wins)
    assert plain < expected_return(BlackjackRules(natural="wins")) < bonus


def test_a_reward_scale_changes_the_return_alone() -> None:
    scaled = BlackjackRules(reward_win=10, reward_loss=-10, reward_natural=15)
    assert expected_return(scaled) == pytest.approx(10 * expected_return(RULES))


def returns(play: Play, num_hands: int) -> np.ndarray:
    """Return what each of some hands earns."""
    earned = np.empty(num_hands)
    for seed in range(num_hands):
        shoe, end = draw_shoe(make_generator(seed)), 4
        own = count(shoe[2:end])
        while not own.is_bust and play(own, value_of(shoe[0])) == "hit":
            end += 1
            own = count(shoe[2:end])
        earned[seed] = settle(shoe[2:end], shoe[:2], shoe[end:], RULES).reward
    return earned


def test_a_simulation_agrees_and_other_plays_are_worse() -> None:
    """1,000 hands, deviation 0.95 / √1,000 = 0.03; all plays meet the same cards."""
    best = returns(PLAY, 1_000)
    assert abs(best.mean() - expected_return(RULES)) < 4 * 0.03
    for threshold in (4, 19, 22):
        assert returns(threshold_play(threshold), 500).mean() < best[:500].mean()


def test_a_threshold_ignores_the_dealer() -> None:
    play = threshold_play(17)
    for up_card in range(1, 11):
        assert play(Count(16, True), up_card) == "hit"
        assert play(Count(17, True), up_card) == "stand"
