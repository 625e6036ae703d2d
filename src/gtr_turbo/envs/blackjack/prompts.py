"""The text beside the picture, and the words of who plays by a plan."""

from gtr_turbo.core.turns import ParsedReply
from gtr_turbo.envs import replies
from gtr_turbo.envs.blackjack.rules import ACTIONS, HIT, STAND, BlackjackRules, count
from gtr_turbo.envs.cards.hands import Card, Hand

REPLY_KEYS = ("thoughts", "action")
"""Keys of a reply, in the order in which they are written."""

_SYNONYMS = {"stick": STAND}

_NATURAL_RULES = {
    "plain": "",
    "bonus": " A win with an ace and a ten in the first two cards counts more.",
    "wins": " An ace and a ten in the first two cards win, unless the dealer has them too.",
}


def write_prompt(rules: BlackjackRules) -> str:
    """Return the prompt, which never tells the cards: they are in the picture."""
    if rules.prompt == "compact":
        return "blackjack: hit or stand"
    return "\n".join(
        (
            "You play blackjack. The picture shows one card of the dealer, whose other card is "
            "face down, and all of yours.",
            "J, Q and K count 10; an ace counts 11 where that does not exceed 21, else 1.",
            f'"{HIT}" takes another card, and more than 21 loses at once; "{STAND}" ends your '
            "turn. Then the dealer takes cards up to 17 or more. The higher sum up to 21 wins."
            + _NATURAL_RULES[rules.natural],
            "Answer with one JSON object and nothing else:",
            "{",
            '  "thoughts": "your sum, the card that the dealer shows, and so what is better",',
            f'  "action": "{STAND}" or "{HIT}"',
            "}",
        )
    )


def write_reply(thoughts: str, action: str, *, compact: bool) -> str:
    """Return a reply of valid format; `compact` leaves out the blanks between its parts."""
    return replies.write_reply({"thoughts": thoughts, "action": action}, compact=compact)


def parse_reply(text: str) -> ParsedReply:
    """Return what a reply says to do."""
    return replies.parse_reply(text, _FORM)


def reasoned_reply(player: Hand, up_card: Card, action: str, rules: BlackjackRules) -> str:
    """Return the reply of one who holds `action` for the better one, right or wrong."""
    own = count(player)
    if rules.prompt == "compact":
        kind = "soft " if own.usable_ace else ""
        thoughts = f"{kind}{own.total} vs {up_card.face}: {action}"
        return write_reply(thoughts, action, compact=True)
    cards = ", ".join(card.face for card in player)
    ace = " with an ace that counts 11" if own.usable_ace else ""
    reason = (
        f"One more card is worth its risk, so I {HIT}."
        if action == HIT
        else f"One more card is not worth its risk, so I {STAND}."
    )
    thoughts = f"I have {cards}: {own.total}{ace}. The dealer shows {up_card.face}. {reason}"
    return write_reply(thoughts, action, compact=False)


def _read_action(text: str) -> str | None:
    word = text.lower()
    word = _SYNONYMS.get(word, word)
    return word if word in ACTIONS else None


_FORM = replies.ReplyForm(keys=REPLY_KEYS, read_action=_read_action)
