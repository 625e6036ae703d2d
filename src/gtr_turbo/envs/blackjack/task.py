"""Blackjack as a task: deals, shows, reads replies, plays the dealer, keeps the rules."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, final

import numpy as np

from gtr_turbo.core.turns import JsonState, Observation, StepResult
from gtr_turbo.envs.base import AbstractTask, Demonstration, TaskEntry
from gtr_turbo.envs.blackjack import render
from gtr_turbo.envs.blackjack.policy import Play, best_play, threshold_play, worth
from gtr_turbo.envs.blackjack.prompts import (
    parse_reply,
    reasoned_reply,
    write_prompt,
    write_reply,
)
from gtr_turbo.envs.blackjack.rules import (
    ACTIONS,
    HIT,
    LIMIT,
    STAND,
    BlackjackRules,
    card_value,
    count,
    draw_shoe,
    settle,
)
from gtr_turbo.envs.cards.hands import Card, Hand
from gtr_turbo.envs.episodes import EpisodeKeeper, make_generator
from gtr_turbo.envs.rules import read_rules

_TASK_ID = "blackjack-v0"
_NUM_DEALT = 2
"""Cards that dealer and player begin with."""
_THRESHOLDS = range(4, LIMIT + 2)
"""Totals from which a mistaken player stands: from "at once" to "never"."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Episode:
    """Where an episode stands. Hits come first in the shoe, the dealer's cards after them."""

    seed: int
    shoe: Hand
    """All cards in the order of dealing: two to the dealer, two to the player, then the rest."""
    num_hits: int = 0
    num_steps: int = 0
    ended: bool = False
    stood: bool = False
    """Whether the player stood, so that the dealer has played."""

    @property
    def player(self) -> Hand:
        """The player's cards."""
        return self.shoe[_NUM_DEALT : 2 * _NUM_DEALT + self.num_hits]

    @property
    def dealt(self) -> Hand:
        """The dealer's first two cards."""
        return self.shoe[:_NUM_DEALT]

    @property
    def rest(self) -> Hand:
        """The cards to come."""
        return self.shoe[2 * _NUM_DEALT + self.num_hits :]


@final
class BlackjackTask(AbstractTask):
    """One seat at the table. An episode's seed decides the order of all cards beforehand."""

    def __init__(self, rules: BlackjackRules, seed: int) -> None:
        """Raise ConfigError when the seed is negative."""
        self.rules = rules
        self.actions = ACTIONS
        """Every action, in the order that the Gymnasium environment numbers them."""
        self._keeper = EpisodeKeeper(_TASK_ID, seed, _write_episode, _read_episode)
        self._best_play = best_play(rules)
        self._shown: Observation | None = None

    @property
    def task_id(self) -> str:
        """Name and version of the rules."""
        return _TASK_ID

    @property
    def observation(self) -> Observation:
        """What is shown now."""
        if self._shown is None:
            self._shown = self._show()
        return self._shown

    @property
    def episode_seed(self) -> int:
        """Seed from which the cards were drawn."""
        return self._keeper.current.seed

    @property
    def player(self) -> Hand:
        """The player's cards."""
        return self._keeper.current.player

    @property
    def dealer(self) -> Hand:
        """The dealer's cards that are shown: the first; after the end all of them."""
        episode = self._keeper.current
        if not episode.ended:
            return episode.dealt[:1]
        if not episode.stood:
            return episode.dealt
        return settle(episode.player, episode.dealt, episode.rest, self.rules).dealer

    @property
    def solvable(self) -> bool:
        """True when the best play, which does not know the cards to come, wins with these cards.

        Whether a hand is won is chance, and its seed decides that chance; a player who knew the
        shoe could win more.
        """
        episode = self._keeper.current
        start = replace(episode, num_hits=0, num_steps=0, ended=False, stood=False)
        return self._follow(start, self._best_play)[1]

    @property
    def episode_kind(self) -> str:
        """The task: its hands are all of one sort. Raises TaskError before the first reset."""
        _ = self._keeper.current
        return self.task_id

    @property
    def admissible_actions(self) -> tuple[str, ...]:
        """Both actions; none after the end of the hand."""
        return () if self._keeper.current.ended else self.actions

    def write_action(self, action: str) -> str:
        """Return a reply that chooses `action`, without a thought."""
        return write_reply("", action, compact=True)

    def reset(self, seed: int | None = None) -> Observation:
        """Deal a hand. Raises ConfigError for a negative seed."""
        seed = self._keeper.draw_seed(seed)
        chance = make_generator(seed)
        self._keeper.begin(_Episode(seed=seed, shoe=draw_shoe(chance)), chance)
        self._shown = None
        return self.observation

    def step(self, reply: str) -> StepResult:
        """Read a reply, apply it, and return what follows. Raises TaskError after the end."""
        episode = self._keeper.running
        parsed = parse_reply(reply)
        action, is_random = self._keeper.choose(
            parsed.action, self.actions, self.rules.unreadable_reply
        )
        after, reward, won = self._outcome(episode, action)
        terminated = after.ended or (self.rules.end_at_first_penalty and reward < 0)
        truncated = not terminated and after.num_steps >= self.rules.max_steps
        self._keeper.move_to(replace(after, ended=terminated or truncated))
        self._shown = None
        return StepResult(
            observation=self.observation,
            parsed=parsed,
            legal=action is not None and not is_random,
            rewards={"task": reward},
            terminated=terminated,
            truncated=truncated,
            success=won,
            random_action=is_random,
        )

    def demonstrate(
        self, generator: np.random.Generator, *, mistake: bool = False
    ) -> list[Demonstration]:
        """Play to the end with the expert and return the trace.

        The expert plays best. A mistake stands from some total on, whatever the dealer shows;
        `generator` draws it among those that don't win with these cards, one of which is to hit
        until 21 is exceeded.
        """
        episode = self._keeper.running
        play = self._mistaken_play(episode, generator) if mistake else self._best_play
        trace: list[Demonstration] = []
        while not episode.ended:
            action = self._action(episode, play)
            reply = reasoned_reply(episode.player, episode.dealt[0], action, self.rules)
            trace.append(Demonstration(observation=self.observation, reply=reply))
            self.step(reply)
            episode = self._keeper.current
        return trace

    def judge_thought(self, reply: str) -> Mapping[str, bool]:
        """Return nothing: no rules judge thoughts about blackjack."""
        del reply
        return {}

    def state(self) -> JsonState:
        """Return a snapshot: the episode, its shoe included, and both generators."""
        return self._keeper.state()

    def restore(self, state: JsonState) -> None:
        """Continue from a snapshot. Raises TaskError when it is another task's, or damaged."""
        self._keeper.restore(state)
        self._shown = None

    def _outcome(self, episode: _Episode, action: str | None) -> tuple[_Episode, float, bool]:
        """Return the episode after an action, the reward, and whether the hand is won."""
        after = replace(episode, num_steps=episode.num_steps + 1)
        if action is None:
            return after, self.rules.reward_illegal, False
        if action == HIT:
            after = replace(after, num_hits=after.num_hits + 1)
            if not count(after.player).is_bust:
                return after, 0.0, False
        ending = settle(after.player, after.dealt, after.rest, self.rules)
        return replace(after, ended=True, stood=action == STAND), ending.reward, ending.won

    def _action(self, episode: _Episode, play: Play) -> str:
        return play(count(episode.player), card_value(episode.dealt[0]))

    def _follow(self, episode: _Episode, play: Play) -> tuple[tuple[str, ...], bool]:
        """Return the actions of a play up to the end of the episode, and whether it wins."""
        actions: list[str] = []
        won = False
        while not episode.ended and episode.num_steps < self.rules.max_steps:
            actions.append(self._action(episode, play))
            episode, _, won = self._outcome(episode, actions[-1])
        return tuple(actions), won

    def _mistaken_play(self, episode: _Episode, generator: np.random.Generator) -> Play:
        """Return a play that does not win, if possible one that differs from the best here."""
        best, _ = self._follow(episode, self._best_play)
        losing: dict[tuple[str, ...], Play] = {}
        for play in map(threshold_play, _THRESHOLDS):
            actions, won = self._follow(episode, play)
            if not won:
                losing[actions] = play
        different = [play for actions, play in losing.items() if actions != best]
        choices = different or list(losing.values())
        return choices[generator.integers(len(choices))]

    def _show(self) -> Observation:
        episode = self._keeper.current
        compact = self.rules.picture == "compact"
        draw = render.draw_compact if compact else render.draw_table
        own, other = (" ".join(card.name for card in hand) for hand in (self.player, self.dealer))
        end = " ended" if episode.ended else ""
        return Observation(
            picture=draw(self.player, self.dealer, open_hand=episode.ended),
            prompt=write_prompt(self.rules),
            state_key=f"{_TASK_ID}: {own} against {other}: {episode.num_steps}{end}",
            advice=self._advice(),
        )

    def _advice(self) -> str:
        """Return what a teacher is told of the present state; nothing when the rules say so.

        It knows what the player knows: the best play, not the cards to come.
        """
        episode, rules = self._keeper.current, self.rules
        if not rules.advice or episode.ended:
            return ""
        own, up_card = count(episode.player), episode.dealt[0]
        action = self._action(episode, self._best_play)
        values = worth(own, card_value(up_card), rules)
        told = f"The sum is {own.total}, the dealer shows {up_card.face}"
        expected = f"{HIT} is worth {values.hit:.2f} on average, {STAND} {values.stand:.2f}"
        reply = reasoned_reply(episode.player, up_card, action, rules)
        return f"{told}: {expected}.\n{reply}"


def make_blackjack(rules: Mapping[str, Any], seed: int) -> BlackjackTask:
    """Return a seat under the default rules, some of them overridden by `rules`.

    Raises ConfigError for an unknown rule (naming the nearest), a bad value, rules that don't go
    together, and a negative seed.
    """
    return BlackjackTask(read_rules(BlackjackRules(), rules), seed)


ENTRY: Final = TaskEntry(
    summary="hit or stand against a dealer, from a deck without end",
    default_rules=partial(BlackjackRules().model_dump, mode="json"),
    make=make_blackjack,
)


def _write_episode(episode: _Episode) -> JsonState:
    return {
        "seed": episode.seed,
        "shoe": [[card.rank, card.suit] for card in episode.shoe],
        "num_hits": episode.num_hits,
        "num_steps": episode.num_steps,
        "ended": episode.ended,
        "stood": episode.stood,
    }


def _read_episode(state: JsonState) -> _Episode:
    return _Episode(
        seed=int(state["seed"]),
        shoe=tuple(Card(int(rank), str(suit)) for rank, suit in state["shoe"]),
        num_hits=int(state["num_hits"]),
        num_steps=int(state["num_steps"]),
        ended=bool(state["ended"]),
        stood=bool(state["stood"]),
    )
