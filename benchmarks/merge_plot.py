"""The plot of `merge.py`: what one merge costs against the number of checkpoints."""

from collections.abc import Mapping
from math import log10
from pathlib import Path
from typing import Any, Final

COLOURS: Final = {
    "mergekit": "#b03",
    "peft": "#c60",
    "scratch": "#06c",
    "next, numpy": "#5a8",
    "next": "#074",
}
_LEFT, _RIGHT, _BOTTOM = 60, 420, 330
_PER_DECADE = 100
_LINE = 14


def svg(table: Mapping[str, Any], path: Path) -> None:
    """Draw CPU seconds against K, both on a logarithmic scale."""
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 540 370" font-family="sans-serif"'
        ' font-size="12">',
        '<rect width="540" height="370" fill="white"/>',
        '<text x="20" y="20">CPU seconds of one merge against the number of checkpoints K</text>',
    ]
    for seconds in (1, 10, 100, 1000):
        y = _height(seconds)
        lines.append(f'<path d="M{_LEFT} {y:.0f}H{_RIGHT}" stroke="#ddd"/>')
        lines.append(f'<text x="{_LEFT - 8}" y="{y + 4:.0f}" text-anchor="end">{seconds}</text>')
    ends: dict[str, tuple[float, float]] = {}
    for name, colour in COLOURS.items():
        points = [
            (_place(int(num)), _height(row[name]["cpu"]))
            for num, row in table["by_k"].items()
            if isinstance(row.get(name), dict)
        ]
        if points:
            text = " ".join(f"{x:.0f},{y:.0f}" for x, y in points)
            lines.append(
                f'<polyline points="{text}" fill="none" stroke="{colour}" stroke-width="2"/>'
            )
            lines += [
                f'<circle cx="{x:.0f}" cy="{y:.0f}" r="3" fill="{colour}"/>' for x, y in points
            ]
            ends[name] = points[-1]
    lowest = float("-inf")
    for name, (x, y) in sorted(ends.items(), key=lambda end: end[1][1]):
        lowest = max(y + 4, lowest + _LINE)
        lines.append(f'<text x="{x + 8:.0f}" y="{lowest:.0f}" fill="{COLOURS[name]}">{name}</text>')
    for num in table["by_k"]:
        place = f'x="{_place(int(num)):.0f}" y="{_BOTTOM + 30}"'
        lines.append(f'<text {place} text-anchor="middle">K = {num}</text>')
    path.write_text("\n".join([*lines, "</svg>"]) + "\n")


def _place(num: int) -> float:
    return _LEFT + 260 * log10(num)


def _height(seconds: float) -> float:
    return _BOTTOM - _PER_DECADE * log10(max(seconds, 0.5))
