"""What an expert says before it acts: what it sees, and why the action follows."""

from gtr_turbo.envs.household.commands import Action, Verb
from gtr_turbo.envs.household.planner import Purpose, Step
from gtr_turbo.envs.household.sight import describe, name_with_marks
from gtr_turbo.envs.household.view import View


def write_thoughts(view: View, step: Step, *, compact: bool) -> str:
    """Return the thoughts before a step: a few words, or a sentence for each of what and why."""
    return _compact(view, step) if compact else f"{_seen(view)} {_reason(step)}"


def _compact(view: View, step: Step) -> str:
    """Return a few words: first what is seen or held, then what follows from it."""
    action, about = step.action, step.about
    if step.purpose is Purpose.REST:
        return "done"
    if action.verb is Verb.OPEN:
        return f"{action.first} closed, open"
    if step.purpose is Purpose.SEARCH:
        seen = f"no {about}" if view.here else f"find {about}"
        return f"{seen}, try {action.first}"
    if step.purpose is Purpose.FETCH:
        return f"{about} here, take" if action.verb is Verb.TAKE else f"{about} at {action.first}"
    held = "hand empty" if view.hand is None else f"have {_marked(view)}"
    if action.verb is Verb.GO:
        return f"{held}, to {action.first}"
    return f"{held}, {action.verb.value}"


def _marked(view: View) -> str:
    """Return the held thing with its condition in front, such as ``hot mug 1``."""
    hand = view.hand
    if hand is None:
        return "nothing"
    marks = (("hot", hand.is_hot), ("cool", hand.is_cool), ("clean", hand.is_clean))
    return " ".join((*(word for word, holds in marks if holds), hand.name))


def _seen(view: View) -> str:
    """Return a sentence or two about what is in sight."""
    place = "; ".join(describe(each) for each in view.here)
    hand = "My hand is empty" if view.hand is None else f"I hold {name_with_marks(view.hand)}"
    return f"I am {f'at {place}' if place else 'in the middle of the room'}. {hand}."


def _reason(step: Step) -> str:
    """Return the sentence that says what comes next, and what for."""
    about, deed = step.about, _deed(step.action)
    reasons = {
        Purpose.SEARCH: f"I still look for {about}, so I {deed}.",
        Purpose.FETCH: f"I want {about}, so I {deed}.",
        Purpose.CHANGE: f"{about} has to be made ready first, so I {deed}.",
        Purpose.DELIVER: f"{about} is ready to be put away, so I {deed}.",
        Purpose.LIGHT: f"{about} has to be seen in the light, so I {deed}.",
        Purpose.FREE_HAND: f"{about} is not what I need, so I {deed}.",
        Purpose.REST: "The task looks done, so I only look around.",
    }
    sentence = reasons[step.purpose]
    return sentence[0].upper() + sentence[1:]


def _deed(action: Action) -> str:
    """Return an action as the end of a sentence that starts with I."""
    forms = {
        Verb.GO: "go to {}",
        Verb.OPEN: "open {}",
        Verb.TAKE: "take it from {1}",
        Verb.PUT: "put it in or on {1}",
        Verb.USE: "switch on {}",
        Verb.CLEAN: "clean it with {1}",
        Verb.HEAT: "heat it with {1}",
        Verb.COOL: "cool it with {1}",
    }
    form = forms.get(action.verb, "look around")
    return form.format(action.first) if "{}" in form else form.format(action.first, action.second)
