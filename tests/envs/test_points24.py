from fractions import Fraction

from gtr_turbo.core.turns import ParsedReply
from gtr_turbo.envs import points24


def test_the_public_names() -> None:
    assert points24.evaluate(["8", "/", "(", "3", "-", "8", "/", "3", ")"]) == Fraction(24)
    assert points24.evaluate(["1", "2"]) is None
    assert points24.solve([3, 3, 8, 8]) == [tuple("8/(3-8/3)")]
    assert points24.solve([1, 1, 1, 1]) == []
    assert points24.parse_reply("") == ParsedReply(
        action=None, valid_format=False, reason="the reply is empty"
    )
    reply = '{"cards": [], "formula": "", "thoughts": "", "action": "="}'
    assert points24.parse_reply(reply) == ParsedReply(action="=", valid_format=True, reason=None)


def test_seventeen_actions() -> None:
    assert len(points24.ACTIONS) == 17
    assert points24.ACTIONS[9:11] == ("10", "+")


def test_the_order_of_the_values_does_not_matter() -> None:
    assert points24.solve([8, 3, 8, 3]) == points24.solve((3, 8, 3, 8))
