"""Sampled episodes as the agent lived them: picture, thoughts, action, rewards."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gtr_turbo.report.markup import Html, element, join
from gtr_turbo.report.records import picture_url

MAX_UPDATES = 12
"""Updates whose episodes are shown, spread over the run; all of them are in `episodes/`."""
MAX_EPISODES = 8
MAX_TURNS = 40
"""Per update and per episode."""
MAX_TEXT = 4_000
"""Characters of a text that are shown."""
MAX_KEYS = 20


def gallery(run: Path, episodes: Mapping[int, Sequence[Mapping[str, Any]]]) -> Html:
    """Return the saved episodes, the newest update first and open."""
    updates = spread([update for update in sorted(episodes) if episodes[update]], MAX_UPDATES)
    if not updates:
        return element("p", "no episode was saved", class_="empty")
    blocks: list[Html] = []
    for update in reversed(updates):
        shown = episodes[update][:MAX_EPISODES]
        solved = sum(bool(episode.get("success")) for episode in shown)
        blocks.append(
            element(
                "details",
                element("summary", f"Update {update}: {solved} of {len(shown)} shown solved"),
                *(_episode(run, episode) for episode in shown),
                open="" if update == updates[-1] else None,
            )
        )
    return join(blocks)


def spread(items: Sequence[int], count: int) -> list[int]:
    """Return at most `count` items, evenly spread, the first and the last among them.

    >>> spread([1, 2, 3, 4, 5, 6, 7], 3)
    [1, 4, 7]
    """
    if len(items) <= count:
        return list(items)
    return [items[round(k * (len(items) - 1) / (count - 1))] for k in range(count)]


def _episode(run: Path, episode: Mapping[str, Any]) -> Html:
    turns = _list(episode.get("turns"))
    end = str(episode.get("end", "")).replace("_", " ")
    success = bool(episode.get("success"))
    header = element(
        "header",
        element("h3", f"Environment {_value(episode.get('environment'))}"),
        _verdict(success, "solved", "not solved"),
        element("span", f"return {_value(episode.get('return'))}"),
        element("span", _plural(len(turns), "turn"), ", ", f"ended: {_cut(end)}"),
        element("span", f"seed {_value(episode.get('seed'))}", class_="soft"),
    )
    cards = [_turn(run, number, turn) for number, turn in enumerate(turns[:MAX_TURNS], start=1)]
    return element("article", header, element("div", *cards, class_="turns"), class_="episode")


def _turn(run: Path, number: int, turn: Mapping[str, Any]) -> Html:
    url = picture_url(run, turn.get("picture"))
    picture = (
        element("div", "no picture", class_="no-picture")
        if url is None
        else element("img", src=url, alt=f"what the agent saw in turn {number}", loading="lazy")
    )
    legal = bool(turn.get("legal"))
    action = element("span", _cut(_value(turn.get("action"))), class_="said")
    facts = [
        ("turn", Html(str(number))),
        ("action", join([action, " ", _verdict(legal, "legal", "not legal")])),
        *([("reason", _cut(turn["reason"]))] if turn.get("reason") else []),
        ("rewards", _rewards(turn.get("rewards"))),
        ("KL", _value(turn.get("kl"))),
        ("value", _value(turn.get("value"))),
    ]
    return element(
        "section",
        picture,
        element("dl", *(join([element("dt", name), element("dd", text)]) for name, text in facts)),
        _reply(str(turn.get("reply", ""))),
        element(
            "details",
            element("summary", "prompt"),
            element("pre", _cut(str(turn.get("prompt", "")))),
        ),
        class_="turn",
    )


def _reply(text: str) -> Html:
    """Return a reply, its keys side by side when it is a JSON object, else as it was written."""
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict) or len(parsed) > MAX_KEYS:
        return element("pre", _cut(text))
    rows = [
        join(
            [
                element("dt", _cut(key)),
                element("dd", _cut(v if isinstance(v, str) else json.dumps(v)), class_="said"),
            ]
        )
        for key, v in parsed.items()
    ]
    return element("dl", *rows)


def _rewards(rewards: object) -> str:
    if not isinstance(rewards, Mapping) or not rewards:
        return "-"
    return ", ".join(f"{_cut(str(name))} {_value(value)}" for name, value in rewards.items())


def _verdict(is_good: bool, yes: str, no: str) -> Html:
    """Return a word that does not depend on its colour."""
    return element("span", yes if is_good else no, class_="good" if is_good else "bad")


def _value(value: object) -> str:
    """Return a number with few digits, any other value as it is, a dash for none."""
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else _cut(str(value))


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _cut(text: object) -> str:
    shown = str(text)
    rest = len(shown) - MAX_TEXT
    return shown if rest <= 0 else f"{shown[:MAX_TEXT]} … ({rest:,} more characters)"


def _list(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
