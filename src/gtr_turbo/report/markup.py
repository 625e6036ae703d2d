"""HTML that escapes unless told otherwise: model text and episode files are hostile."""

import html
import re
from collections.abc import Iterable
from importlib.resources import files
from typing import final

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
"""Characters that hide, reorder or end text; a page shows a replacement mark instead."""
EMPTY_ELEMENTS = frozenset({"meta", "img"})
"""Elements of HTML that have no end; those of SVG always have one."""


@final
class Html(str):
    """Text that is HTML already, made by the functions of this module."""

    __slots__ = ()


def style_sheet(*names: str) -> Html:
    """Return this package's style sheets one after the other, ready for a `style` element."""
    home = files("gtr_turbo.report")
    return Html("".join(home.joinpath(f"{name}.css").read_text("utf-8") for name in names))


Child = str | int | float | None
"""What an element may hold; anything that is not Html is escaped, None is left out."""


def escape(value: object) -> Html:
    """Return a value as harmless HTML text: markup, controls and half characters are defused.

    >>> escape("<b>")
    '&lt;b&gt;'
    """
    whole = str(value).encode("utf-8", "replace").decode("utf-8")
    return Html(html.escape(CONTROL.sub("\ufffd", whole), quote=True))


def join(parts: Iterable[Child], between: str = "") -> Html:
    """Return the parts one after the other, each escaped unless it is Html."""
    shown = [part if isinstance(part, Html) else escape(part) for part in parts if part is not None]
    return Html(escape(between).join(shown))


def element(name: str, /, *children: Child, **attributes: Child) -> Html:
    """Return an element; `class_` and `stroke_width` become `class` and `stroke-width`.

    >>> element("p", "1 < 2", class_="note")
    '<p class="note">1 &lt; 2</p>'
    """
    given = [
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for key, value in attributes.items()
        if value is not None
    ]
    start = f"<{name}{''.join(given)}>"
    return Html(start if name in EMPTY_ELEMENTS else f"{start}{join(children)}</{name}>")
