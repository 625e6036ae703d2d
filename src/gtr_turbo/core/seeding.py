"""One seed becomes named generators. The only place that touches torch's global generator."""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch

from gtr_turbo.core.turns import JsonState


def stream_seed(seed: int, *path: str | int) -> int:
    """Return a 63-bit seed for a named stream; different paths give independent streams.

    Words are read byte by byte without a border between them, so two neighbouring words count as
    one: ("ab", "c") is the stream of ("a", "bc").

    >>> stream_seed(0, "tasks", 1) == stream_seed(0, "tasks", 1) != stream_seed(0, "tasks", 2)
    True
    """
    words = [seed]
    for part in path:
        words.extend(part.encode() if isinstance(part, str) else [part + 256])
    return int(np.random.SeedSequence(words).generate_state(1, np.uint64)[0] >> np.uint64(1))


@final
@dataclass(frozen=True)
class Seeds:
    """The generators of one run, all made from one seed."""

    seed: int
    sampler: torch.Generator
    """Draws reply tokens in rollouts."""
    shuffle: torch.Generator
    """Orders the minibatches."""
    writer: torch.Generator
    """Draws the tokens of a teacher that writes thoughts."""
    lessons: torch.Generator
    """Draws the thoughts that are imitated."""

    @classmethod
    def make(cls, seed: int, device: str = "cpu") -> "Seeds":
        """Return fresh generators; sampling happens on `device`, shuffling on the CPU."""
        sampler = torch.Generator(device).manual_seed(stream_seed(seed, "sampler"))
        shuffle = torch.Generator().manual_seed(stream_seed(seed, "shuffle"))
        writer = torch.Generator(device).manual_seed(stream_seed(seed, "writer"))
        lessons = torch.Generator().manual_seed(stream_seed(seed, "lessons"))
        return cls(seed, sampler, shuffle, writer, lessons)

    def task(self, index: int) -> int:
        """Return the seed of environment `index`; it does not depend on how many there are."""
        return stream_seed(self.seed, "tasks", index)

    def state(self) -> JsonState:
        """Return the generators' states, torch's global one (dropout) included, JSON-able."""
        states = {name: own.get_state().tolist() for name, own in self._named().items()}
        states["global"] = torch.get_rng_state().tolist()
        if torch.cuda.is_available():
            states["cuda"] = torch.cuda.get_rng_state().tolist()
        return states

    def restore(self, state: JsonState) -> None:
        """Put every generator back to a saved state."""
        for name, generator in self._named().items():
            generator.set_state(torch.tensor(state[name], dtype=torch.uint8))
        torch.set_rng_state(torch.tensor(state["global"], dtype=torch.uint8))
        if "cuda" in state and torch.cuda.is_available():
            torch.cuda.set_rng_state(torch.tensor(state["cuda"], dtype=torch.uint8))

    def _named(self) -> dict[str, torch.Generator]:
        return {
            "sampler": self.sampler,
            "shuffle": self.shuffle,
            "writer": self.writer,
            "lessons": self.lessons,
        }


def seed_everything(seed: int, stream: str) -> None:
    """Seed torch's global generator, which weight initialisation and dropout draw from."""
    torch.manual_seed(stream_seed(seed, stream))
