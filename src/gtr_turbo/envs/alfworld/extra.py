"""The door to the optional packages: nothing else in this package imports them.

``alfworld`` and ``textworld`` are under the MIT licence, but the planner and the interpreter that
they pull in (fast-downward-textworld, jericho) are under the GPL: they are never a dependency of
this project, and are loaded only when a game of ALFWorld is played or written.
"""

from importlib import import_module
from typing import Any

from gtr_turbo.errors import ConfigError

INSTALL_HINT = (
    'install the extra with `pip install "gtr-turbo[alfworld]"`; it compiles a planner, so it '
    "needs g++ and make, and some minutes. The task `household` plays the same rules without it."
)


def load(module: str) -> Any:
    """Return an optional module. Raises ConfigError with the install hint when it is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigError(f"`{module}` can't be imported ({error}).", hint=INSTALL_HINT) from error
