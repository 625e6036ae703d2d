"""A card game as a task: deals, shows, reads replies, keeps the rules."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from gtr_turbo.core.turns import JsonState, Observation, StepResult
from gtr_turbo.envs.base import AbstractTask, Demonstration
from gtr_turbo.envs.cards import expert, judge, render
from gtr_turbo.envs.cards.formula import BLANK, EQUALS, NUMBERS, evaluate
from gtr_turbo.envs.cards.games import CardGame
from gtr_turbo.envs.cards.hands import Card, Hand, check_deal, deal, hand_values
from gtr_turbo.envs.cards.prompts import formula_text, write_prompt
from gtr_turbo.envs.cards.replies import named_fields, parse_reply, write_reply
from gtr_turbo.envs.cards.rules import CardRules
from gtr_turbo.envs.episodes import EpisodeKeeper, make_generator

REGISTERED_STEP_LIMIT = 300
"""Outer limit under `length_limit: tokens`, where illegal actions need not lengthen the formula."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Episode:
    """Where an episode stands."""

    seed: int
    hand: Hand
    formula: tuple[str, ...] = ()
    num_steps: int = 0
    ended: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Outcome:
    """What an action does: the formula after it, its reward, and whether the game is over."""

    formula: tuple[str, ...]
    reward: float
    legal: bool = True
    terminated: bool = False
    truncated: bool = False
    success: bool = False


@final
class CardTask(AbstractTask):
    """One seat at a card game; chance makes the deal and, where the rules ask, random actions."""

    def __init__(self, game: CardGame, rules: CardRules, seed: int) -> None:
        """Raise ConfigError when the rules don't fit the game, or the seed is negative."""
        self.game = game
        self.rules = rules
        self.actions = game.actions(rules)
        """Every action, in the order that the Gymnasium environment numbers them."""
        check_deal(game.num_cards, rules, lambda values: game.can_win(values, rules))
        self._keeper = EpisodeKeeper(game.task_id, seed, _write_episode, _read_episode)
        self._shown: Observation | None = None

    @property
    def task_id(self) -> str:
        """Name and version of the game."""
        return self.game.task_id

    @property
    def observation(self) -> Observation:
        """What is shown now."""
        if self._shown is None:
            self._shown = self._show()
        return self._shown

    @property
    def episode_seed(self) -> int:
        """Seed from which the current hand was dealt."""
        return self._keeper.current.seed

    @property
    def hand(self) -> Hand:
        """The cards on the table, from left to right."""
        return self._keeper.current.hand

    @property
    def formula(self) -> tuple[str, ...]:
        """The tokens written so far, blanks of illegal actions included."""
        return self._keeper.current.formula

    @property
    def solvable(self) -> bool:
        """True when the hand has a winning formula that fits into the length limit."""
        return self.game.can_win(self._values, self.rules)

    @property
    def episode_kind(self) -> str:
        """The game: its hands are all of one sort."""
        _ = self._keeper.current
        return self.task_id

    @property
    def admissible_actions(self) -> tuple[str, ...]:
        """Every action but numbers that no unused card holds; none after the longest formula."""
        if self._is_too_long:
            return ()
        return tuple(a for a in self.actions if a not in NUMBERS or self._holds_another(a))

    def write_action(self, action: str) -> str:
        """Return a reply that chooses `action`, with nothing in its other fields."""
        return write_reply(cards=(), formula="", thoughts="", action=action, compact=True)

    def reset(self, seed: int | None = None) -> Observation:
        """Deal a hand and return its first observation. Raises ConfigError for a negative seed."""
        seed = self._keeper.draw_seed(seed)
        chance = make_generator(seed)
        hand = deal(self.game.num_cards, self.rules, chance)
        while self.rules.only_solvable and not self._can_win(hand):
            hand = deal(self.game.num_cards, self.rules, chance)
        self._keeper.begin(_Episode(seed=seed, hand=hand), chance)
        self._shown = None
        return self.observation

    def step(self, reply: str) -> StepResult:
        """Read a reply, apply it, and return what follows. Raises TaskError after the end."""
        episode = self._keeper.running
        parsed = parse_reply(reply, self.actions)
        action, is_random = self._keeper.choose(
            parsed.action, self.actions, self.rules.unreadable_reply
        )
        outcome = self._outcome(action)
        num_steps = episode.num_steps + 1
        terminated = outcome.terminated
        if self.rules.end_at_first_penalty and outcome.reward < 0 and not outcome.truncated:
            terminated = True
        truncated = not terminated and (outcome.truncated or num_steps >= self._step_limit)
        reward = outcome.reward
        self._keeper.move_to(replace(episode, formula=outcome.formula, num_steps=num_steps))
        if self.rules.end_when_hopeless and not (terminated or truncated) and self._is_hopeless:
            terminated, reward = True, self.rules.reward_failure
        self._keeper.move_to(replace(self._keeper.current, ended=terminated or truncated))
        self._shown = None
        return StepResult(
            observation=self.observation,
            parsed=parsed,
            legal=outcome.legal and not is_random,
            rewards={"task": reward},
            terminated=terminated,
            truncated=truncated,
            success=outcome.success,
            random_action=is_random,
        )

    def demonstrate(
        self, generator: np.random.Generator, *, mistake: bool = False
    ) -> list[Demonstration]:
        """Play to the end with the expert and return the trace.

        The right plan is a function of the table alone; only mistakes draw from `generator`. Where
        no right plan is left, the expert says so and hands in what stands there, which is the
        cheapest way out.
        """
        _ = self._keeper.running
        written = self._written
        if mistake:
            plan = expert.wrong_plan(self.game, self.rules, self._values, written, generator)
        else:
            plan = expert.right_plan(self.game, self.rules, self._values, written, self._room)
        trace: list[Demonstration] = []
        while not self._keeper.current.ended:
            reply = self._expert_reply(plan)
            trace.append(Demonstration(observation=self.observation, reply=reply))
            self.step(reply)
        return trace

    def judge_thought(self, reply: str) -> Mapping[str, bool]:
        """Return whether cards and plan of a reply are right, and whether its action follows."""
        return judge.judge_thought(
            named_fields(reply),
            parse_reply(reply, self.actions).action,
            judge.Table(
                game=self.game,
                rules=self.rules,
                hand=self.hand,
                written=self._written,
                room=self._room,
            ),
        )

    def state(self) -> JsonState:
        """Return a snapshot: the episode and both generators."""
        return self._keeper.state()

    def restore(self, state: JsonState) -> None:
        """Continue from a snapshot. Raises TaskError when it is another task's, or damaged."""
        self._keeper.restore(state)
        self._shown = None

    @property
    def _values(self) -> tuple[int, ...]:
        return hand_values(self.hand, self.rules)

    @property
    def _written(self) -> tuple[str, ...]:
        """The formula without the blanks of illegal actions."""
        return tuple(token for token in self.formula if token != BLANK)

    @property
    def _step_limit(self) -> int:
        limits = {"steps": self.rules.max_steps, "tokens": REGISTERED_STEP_LIMIT}
        return limits[self.rules.length_limit]

    @property
    def _room(self) -> int:
        """How many tokens may still be written before the ``=``."""
        room = self._step_limit - self._keeper.current.num_steps - 1
        if self.rules.length_limit == "tokens":
            room = min(room, self.rules.max_tokens - len(self.formula))
        return room

    @property
    def _is_too_long(self) -> bool:
        """Whether the next step is refused whatever it is (the lineage's length limit)."""
        return self.rules.length_limit == "tokens" and len(self.formula) > self.rules.max_tokens

    def _can_win(self, hand: Hand) -> bool:
        return self.game.can_win(hand_values(hand, self.rules), self.rules)

    def _outcome(self, action: str | None) -> _Outcome:
        formula = self.formula
        if self._is_too_long:
            return _Outcome(
                formula=formula, reward=self.rules.reward_illegal, legal=False, truncated=True
            )
        if action == EQUALS:
            success = self._is_right()
            reward = self.rules.reward_success if success else self.rules.reward_failure
            return _Outcome(formula=formula, reward=reward, terminated=True, success=success)
        if action is None:
            return _Outcome(formula=formula, reward=self.rules.reward_illegal, legal=False)
        if action in NUMBERS and not self._holds_another(action):
            appended = (*formula, BLANK)
            after = appended if self.rules.illegal_action == "blank_appended" else formula
            return _Outcome(formula=after, reward=self.rules.reward_illegal, legal=False)
        return _Outcome(formula=(*formula, action), reward=0.0)

    def _holds_another(self, number: str) -> bool:
        """Return whether a card of this value is still unused."""
        return self.formula.count(number) < self._values.count(int(number))

    def _is_right(self) -> bool:
        """Return whether the formula has the target's value and uses the cards as required."""
        used = Counter(int(token) for token in self._written if token in NUMBERS)
        if self.rules.must_use_all_cards and used != Counter(self._values):
            return False
        return evaluate(self._written) == self.rules.target

    def _show(self) -> Observation:
        episode = self._keeper.current
        compact = self.rules.picture == "compact"
        names = " ".join(card.name for card in episode.hand)
        end = " ended" if episode.ended else ""
        key = f"{self.task_id}: {names}: {formula_text(episode.formula)}: {episode.num_steps}{end}"
        return Observation(
            picture=render.draw_compact(episode.hand)
            if compact
            else render.draw_table(episode.hand, episode.formula),
            prompt=write_prompt(self.game, self.rules, episode.formula),
            state_key=key,
            advice=self._advice(),
        )

    def _advice(self) -> str:
        """Return what a teacher is told of the present state; nothing when the rules say so."""
        if not self.rules.advice or self._keeper.current.ended:
            return ""
        table = (self.game, self.rules, self._values, self._written, self._room)
        reply = self._expert_reply(expert.right_plan(*table))
        return expert.write_advice(self.rules, expert.right_plans(*table), reply)

    @property
    def _is_hopeless(self) -> bool:
        """Whether no right formula continues what stands and fits into what room there is."""
        values, written = self._values, self._written
        return not expert.right_plans(self.game, self.rules, values, written, self._room)

    def _expert_reply(self, plan: tuple[str, ...] | None) -> str:
        """Return what the expert writes now, with a plan or without one."""
        rest = () if plan is None else plan[len(self._written) :]
        action = rest[0] if rest else EQUALS
        compact = self.rules.prompt == "compact"
        return write_reply(
            cards=[card.face if compact else card.name for card in self.hand],
            formula=formula_text(self.formula),
            thoughts=expert.write_thoughts(self.rules, plan, self._written, action),
            action=action,
            compact=compact,
        )


def _write_episode(episode: _Episode) -> JsonState:
    return {
        "seed": episode.seed,
        "hand": [[card.rank, card.suit] for card in episode.hand],
        "formula": list(episode.formula),
        "num_steps": episode.num_steps,
        "ended": episode.ended,
    }


def _read_episode(state: JsonState) -> _Episode:
    return _Episode(
        seed=int(state["seed"]),
        hand=tuple(Card(int(rank), str(suit)) for rank, suit in state["hand"]),
        formula=tuple(str(token) for token in state["formula"]),
        num_steps=int(state["num_steps"]),
        ended=bool(state["ended"]),
    )
