"""The rule switches of the card games.

Defaults are the paper's; where the released code of the lineage differs, the other value of the
switch follows it (docs/environments.md has the table).
"""

from typing import Annotated, Literal, final

from pydantic import BaseModel, ConfigDict, Field, model_validator

Rank = Annotated[int, Field(ge=1, le=13)]


@final
class CardRules(BaseModel):
    """Everything about a card game that can be switched."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    target: Annotated[int, Field(ge=1, le=10_000)] = 24
    """The value that the formula must have."""
    must_use_all_cards: bool = True
    """A winning formula uses every card; otherwise any of them will do."""
    face_cards_as_ten: bool = True
    """J, Q and K count as 10; otherwise as 11, 12 and 13, which are then actions too."""

    ranks: tuple[Rank, ...] = tuple(range(1, 14))
    """Ranks that are dealt: 1 is the ace, 11 to 13 are J, Q, K."""
    deal: Literal["with_replacement", "deck", "pairs"] = "with_replacement"
    """`with_replacement`: each card drawn alone, the lineage's way; `deck`: no card twice;
    `pairs`: two cards whose sum or product is the target, as in EZPoints."""
    only_solvable: bool = False
    """Deal again until the hand can be solved."""

    illegal_action: Literal["unchanged", "blank_appended"] = "unchanged"
    """What an illegal action does to the formula: nothing (paper) or a blank is appended (code)."""
    unreadable_reply: Literal["illegal", "random_action"] = "illegal"
    """A reply without an action is illegal, or is replaced by a random action (code), counted."""
    length_limit: Literal["steps", "tokens"] = "steps"
    """What truncates: the step that reaches `max_steps` (paper), or a step that finds more than
    `max_tokens` tokens in the formula (code; with 300 steps as its outer limit)."""
    max_steps: Annotated[int, Field(ge=1)] = 20
    """Steps per episode under `length_limit: steps`."""
    max_tokens: Annotated[int, Field(ge=1)] = 20
    """Tokens after which a further step is refused under `length_limit: tokens`."""
    end_at_first_penalty: bool = False
    """The first negative reward ends the episode: early truncation, for training only."""
    end_when_hopeless: bool = False
    """A turn after which no right formula continues what stands ends the episode with
    `reward_failure`: GTR's early truncation by its corrector, for training only."""

    reward_success: float = 10.0
    """For ``=`` on a right formula."""
    reward_failure: float = -1.0
    """For ``=`` on any other."""
    reward_illegal: float = -1.0
    """For an illegal action, an unreadable reply, and a step beyond `max_tokens`."""

    picture: Literal["table", "compact"] = "table"
    """`table`: 300 × 300 pixels as in the lineage; `compact`: one 28 × 28 cell for each card."""
    prompt: Literal["full", "compact"] = "full"
    """`full`: role, rules and template; `compact`: target and formula only, for tiny models."""

    advice: bool = False
    """Whether `Observation.advice` tells what the solver says, for a teacher; never the prompt."""

    @model_validator(mode="after")
    def _check_ranks(self) -> "CardRules":
        if not self.ranks or len(set(self.ranks)) < len(self.ranks):
            raise ValueError(f"`ranks` must be distinct and at least one, got {list(self.ranks)}.")
        return self
