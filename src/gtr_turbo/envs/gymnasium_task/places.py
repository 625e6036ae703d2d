"""Where things stand in the toy-text games, in words, for an expert's thoughts."""

from typing import Any, Final

_TAXI_PLACES: Final = ("red", "green", "yellow", "blue")


def describe_place(inner: Any, *, compact: bool) -> str:
    """Return what the picture of an unwrapped environment shows, in a few words or a sentence."""
    state = int(inner.s)
    if callable(getattr(inner, "decode", None)):
        return _taxi(*(int(part) for part in inner.decode(state)), compact=compact)
    lake, cliff = getattr(inner, "desc", None), getattr(inner, "shape", None)
    if lake is not None:
        num_columns = lake.shape[1]
        goals = [divmod(i, num_columns) for i, cell in enumerate(lake.ravel()) if cell == b"G"]
        return _walker(divmod(state, num_columns), goals, compact=compact)
    if cliff is not None:
        goal = (cliff[0] - 1, cliff[1] - 1)
        return _walker(divmod(state, cliff[1]), [goal], compact=compact)
    return f"state {state}" if compact else f"This is state {state}."


def _walker(at: tuple[int, int], goals: list[tuple[int, int]], *, compact: bool) -> str:
    row, column = at[0] + 1, at[1] + 1
    if compact:
        ends = " ".join(f"{goal[0] + 1},{goal[1] + 1}" for goal in goals[:1])
        return f"at {row},{column} goal {ends}"
    ends = " or ".join(f"row {goal[0] + 1}, column {goal[1] + 1}" for goal in goals)
    return f"I stand in row {row}, column {column}; the goal is in {ends or 'no place'}."


def _taxi(row: int, column: int, passenger: int, destination: int, *, compact: bool) -> str:
    target = _TAXI_PLACES[destination]
    waiting = _TAXI_PLACES[passenger] if passenger < len(_TAXI_PLACES) else None
    if compact:
        return f"taxi {row + 1},{column + 1} {f'fetch {waiting}' if waiting else f'to {target}'}"
    who = f"the passenger waits at {waiting}" if waiting else "the passenger is in the taxi"
    return f"The taxi is in row {row + 1}, column {column + 1}; {who} and wants to go to {target}."
