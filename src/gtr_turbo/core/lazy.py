"""Public names of a package, each loaded when it is first used (PEP 562)."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def lazy_names(
    package: dict[str, Any], homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package.

    Args:
        package: The package's `globals()`; a name that was loaded is kept there.
        homes: Module → the public names that it defines.
    """
    home_of = {name: module for module, names in homes.items() for name in names}

    def load(name: str) -> Any:
        """Return a public name, loading its module at the first use."""
        if name not in home_of:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(home_of[name]), name)
        package[name] = value
        return value

    def names() -> list[str]:
        """Return the public names, loaded or not."""
        return sorted({*package, *home_of})

    return load, names
