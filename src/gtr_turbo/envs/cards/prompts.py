"""The text beside the picture."""

from gtr_turbo.envs.cards.formula import EQUALS
from gtr_turbo.envs.cards.games import CardGame
from gtr_turbo.envs.cards.rules import CardRules

_NUMBER_WORDS = {2: "two", 4: "four"}


def formula_text(tokens: tuple[str, ...]) -> str:
    """Return a formula as it stands in prompts and replies: its tokens without blanks between."""
    return "".join(tokens)


def write_prompt(game: CardGame, rules: CardRules, formula: tuple[str, ...]) -> str:
    """Return the prompt for a state: it tells the formula; the cards are in the picture."""
    if rules.prompt == "compact":
        return f"make {rules.target} formula: {formula_text(formula)}"
    return _full_prompt(game, rules, formula)


def _full_prompt(game: CardGame, rules: CardRules, formula: tuple[str, ...]) -> str:
    """Return the long prompt: the contents of the lineage's, in its order, in words of our own."""
    count = _NUMBER_WORDS[game.num_cards]
    choices = ", ".join(f'"{action}"' for action in game.actions(rules))
    faces = "J, Q and K count as 10" if rules.face_cards_as_ten else "J is 11, Q is 12 and K is 13"
    use = "every card exactly once" if rules.must_use_all_cards else "no card more than once"
    cards = ", ".join(f'"card {i + 1}"' for i in range(game.num_cards))
    return "\n".join(
        (
            f"You are a master of the {rules.target} points card game; "
            f"the picture shows your {count} cards.",
            f'Formula so far: "{formula_text(formula)}"',
            f"Choose one of: {choices}.",
            f'A number, operator or bracket is written behind the formula; "{EQUALS}" hands it in.',
            f"An ace counts as 1, {faces}.",
            f"Goal: a formula whose value is {rules.target} and that uses {use}.",
            "Answer with one JSON object and nothing else:",
            "{",
            f'  "cards": [{cards}],',
            '  "formula": "the formula so far",',
            f'  "thoughts": "is the value {rules.target} already? Then \\"{EQUALS}\\"; '
            'if not, which token comes next, and why",',
            '  "action": "your choice"',
            "}",
        )
    )
