"""`gtr-turbo judge`: a model scores the thoughts that a run has saved.

The scores are one model's opinion. They say how two runs differ under the same judge, not how good
thoughts are; the judge of rules in `gtr-turbo eval` says what is true.
"""

import hashlib
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, final

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from gtr_turbo.commands.env import print_line
from gtr_turbo.core.addresses import refuse_address
from gtr_turbo.core.arguments import JudgeArguments
from gtr_turbo.core.files import dump_json, write_text_atomically
from gtr_turbo.core.teaching import CorrectorConfig
from gtr_turbo.envs.replies import MAX_CHARACTERS
from gtr_turbo.errors import ConfigError
from gtr_turbo.report.records import picture_url, read_run
from gtr_turbo.teachers.corrector.answers import load_object
from gtr_turbo.teachers.corrector.asking import Asker
from gtr_turbo.teachers.corrector.questions import REPLIED, TOLD, Question, make_question

JUDGE_FOLDER: Final = "judge"
"""Folder of a run that keeps a judge's answers."""
CRITERIA: Final = ("factual", "logical", "coherent")
HIGHEST_SCORE: Final = 5

JUDGE_TEXT: Final = """\
You score the thoughts of an agent that plays a task by looking at pictures. You get what the \
agent was told, the picture that it saw, and its reply, a JSON object whose last field is its \
action.

Give each of three scores from 1 (worst) to 5 (best):
- "factual": what the thoughts say of the picture and of the state is true. 5: all of it; 3: about \
half of it; 1: none of it, or nothing is said.
- "logical": the steps follow from one another and from the rules, and lead to the action. 5: all \
do; 3: there is a gap or a mistake; 1: they don't, or the action contradicts them.
- "coherent": the thoughts are clear, belong to this state and do not contradict or repeat \
themselves. 5: wholly; 1: they are empty, or fit any state.
Score each by itself: thoughts can be coherent and false.

Answer with one JSON object and nothing else:
{"why": "one or two short sentences", "factual": 1, "logical": 1, "coherent": 1}"""

_SETTINGS: Final[Mapping[str, Any]] = {
    "tell_solution": False,
    "temperature": 0.0,
    "max_tokens": 300,
    "on_failure": "stop",
}

_Score = Annotated[int, Field(ge=1, le=HIGHEST_SCORE)]


@final
class Scores(BaseModel):
    """The schema of an answer."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True)

    factual: _Score
    logical: _Score
    coherent: _Score


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A saved turn and the question about it; None when the turn cannot be shown."""

    update: int
    question: Question | None


def judge_run(arguments: JudgeArguments, console: Console) -> dict[str, Any]:
    """Score the thoughts of a run's saved episodes, print the means and return all numbers.

    Answers are kept in the run's folder `judge`; the same command pays for none of them again.
    Raises ConfigError for what cannot be judged, CorrectorError when the endpoint gives up.
    """
    config = _settings(arguments)
    asked = _questions(arguments)
    questions = [turn.question for turn in asked if turn.question is not None]
    if not questions:
        raise ConfigError(
            f"{arguments.run_dir} has no saved episodes that can be shown.",
            hint="a run saves some when `run.saved_episodes` is not 0.",
        )
    asker = Asker(config, arguments.run_dir / JUDGE_FOLDER, who="the judge")
    try:
        answers = iter(asker.ask(questions))
        counts, cost = asker.counts, asker.total_cost
    finally:
        asker.close()
    scored: dict[int, list[Scores]] = {}
    for turn in asked:
        if turn.question is not None and (scores := read_scores(next(answers) or "")) is not None:
            scored.setdefault(turn.update, []).append(scores)
    everything = [scores for own in scored.values() for scores in own]
    found = {
        "model": arguments.model,
        "turns": len(asked),
        "not_shown": len(asked) - len(questions),
        "scored": len(everything),
        "without_scores": len(questions) - len(everything),
        "unreadable_answers": counts.unreadable,
        "requests": counts.requests,
        "input_tokens": counts.input_tokens,
        "output_tokens": counts.output_tokens,
        "cost": cost,
        "means": _means(everything),
        "by_update": {
            str(update): {"scored": len(own), "means": _means(own)}
            for update, own in sorted(scored.items())
        },
    }
    _show(arguments, found, everything, console)
    if arguments.json is not None:
        write_text_atomically(arguments.json, dump_json(found, indent=2) + "\n")
    return found


def read_scores(text: str) -> Scores | None:
    """Return the scores in an answer; None when it cannot be read.

    >>> read_scores('{"factual": 5, "logical": 4, "coherent": 6}') is None
    True
    """
    try:
        return Scores.model_validate(load_object(text))
    except ValidationError:
        return None


def _is_readable(text: str) -> bool:
    return read_scores(text) is not None


def _settings(arguments: JudgeArguments) -> CorrectorConfig:
    prices = arguments.price_per_million_input_tokens, arguments.price_per_million_output_tokens
    if arguments.max_cost is not None and not any(prices):
        raise ConfigError(
            f"`--max-cost` {arguments.max_cost:g} limits nothing: both prices are 0.",
            hint="give --price-per-million-input-tokens and --price-per-million-output-tokens.",
        )
    if arguments.episodes < 1:
        raise ConfigError(f"`--episodes` must be at least 1, got {arguments.episodes}.")
    refuse_address("--url", arguments.url)
    given = {
        "url": arguments.url,
        "model": arguments.model,
        "api_key_variable": arguments.api_key_variable,
        "num_parallel": arguments.num_parallel,
        "max_cost": arguments.max_cost,
        "price_per_million_input_tokens": prices[0],
        "price_per_million_output_tokens": prices[1],
    }
    try:
        return CorrectorConfig(**given, **_SETTINGS)
    except ValidationError as error:
        fault = error.errors(include_url=False)[0]
        option = f"--{fault['loc'][0]}".replace("_", "-")
        raise ConfigError(f"`{option}`: {fault['msg']}, got {fault['input']}.") from error


def _questions(arguments: JudgeArguments) -> list[_Asked]:
    """Return the turns of the episodes that are judged, taken evenly over the run."""
    saved = read_run(arguments.run_dir).episodes
    episodes = [(update, one) for update, own in sorted(saved.items()) for one in own]
    count = min(arguments.episodes, len(episodes))
    chosen = [episodes[place * len(episodes) // count] for place in range(count)]
    return [
        _Asked(update=update, question=_question(arguments, turn))
        for update, episode in chosen
        for turn in episode.get("turns", ())
    ]


def _question(arguments: JudgeArguments, turn: Mapping[str, Any]) -> Question | None:
    url = picture_url(arguments.run_dir, turn.get("picture"))
    prompt, reply = turn.get("prompt"), turn.get("reply")
    if url is None or not (isinstance(prompt, str) and isinstance(reply, str)):
        return None
    return make_question(
        system=JUDGE_TEXT,
        before=[TOLD + prompt],
        picture_url=url,
        picture_name=hashlib.sha256(url.encode("ascii")).hexdigest(),
        after=[REPLIED + reply[:MAX_CHARACTERS]],
        model=arguments.model,
        temperature=_SETTINGS["temperature"],
        is_readable=_is_readable,
    )


def _means(scores: Sequence[Scores]) -> dict[str, float] | None:
    if not scores:
        return None
    return {name: statistics.fmean(getattr(one, name) for one in scores) for name in CRITERIA}


def _show(
    arguments: JudgeArguments, found: Mapping[str, Any], scores: Sequence[Scores], console: Console
) -> None:
    table = Table(title=escape(f"thoughts of {arguments.run_dir}, judged by {arguments.model}"))
    given = range(1, HIGHEST_SCORE + 1)
    for column in ("criterion", "mean", *(f"{score}s" for score in given)):
        table.add_column(column)
    for name in CRITERIA:
        own = [getattr(one, name) for one in scores]
        mean = f"{statistics.fmean(own):.2f}" if own else "-"
        table.add_row(name, mean, *(str(own.count(score)) for score in given))
    console.print(table)
    print_line(
        console,
        f"{found['scored']} of {found['turns']} turns have scores; {found['not_shown']} could not"
        f" be shown, {found['without_scores']} got no answer that can be read"
        f" ({found['unreadable_answers']} unreadable answers in {found['requests']} requests).",
    )
