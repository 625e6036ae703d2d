"""Milliseconds per step of the household's engine and of TextWorld, on the same walks.

    make test-alfworld                                    # makes .venv-alfworld, once
    .venv-alfworld/bin/python benchmarks/household.py [--runs 3] [--games 3] [--json FILE]

Each game is dealt by the household and written for ALFWorld. Both engines carry out the same
commands and list what is admissible after each, which is all that either has to do; neither draws.
The processor's time is counted, not the wall's, and the engines alternate.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
from common import arguments, finish, spread  # pyright: ignore[reportImplicitRelativeImport]  a script beside it

from gtr_turbo.envs.alfworld.games import write_game
from gtr_turbo.envs.alfworld.text import TextWorld
from gtr_turbo.envs.household.commands import write_command
from gtr_turbo.envs.household.engine import Household
from gtr_turbo.envs.household.games import Dealer, Game
from gtr_turbo.envs.household.rules import HouseholdRules

NUM_STEPS = 20
"""Steps of a walk in TextWorld."""
NUM_REPEATS = 50
"""How often the household repeats the walk, whose time alone would be too short to measure."""


def random_walk(game: Game, generator: np.random.Generator) -> list[str]:
    """Return admissible commands, one after the other."""
    house = Household(game)
    state = house.start
    commands: list[str] = []
    for _ in range(NUM_STEPS):
        actions = house.admissible(state)
        action = actions[int(generator.integers(len(actions)))]
        commands.append(write_command(action, "0.4"))
        state = house.apply(state, action)
    return commands


def household_milliseconds(game: Game, commands: list[str]) -> float:
    """Return the time of a step, the words of all admissible actions included."""
    house = Household(game)
    start = time.process_time()
    for _ in range(NUM_REPEATS):
        state = house.start
        known = {write_command(action, "0.4"): action for action in house.admissible(state)}
        for command in commands:
            state = house.apply(state, known[command])
            house.won(state)
            known = {write_command(action, "0.4"): action for action in house.admissible(state)}
    return 1000 * (time.process_time() - start) / (NUM_REPEATS * len(commands))


def textworld_milliseconds(world: TextWorld, path: Path, commands: list[str]) -> float:
    """Return the time of a step; loading and starting the game are not in it."""
    world.start(path)
    start = time.process_time()
    for command in commands:
        world.do(command)
    return 1000 * (time.process_time() - start) / len(commands)


def main() -> None:
    """Print both times and their ratio, and write them as JSON where asked to."""
    parser = arguments(__doc__ or "", runs=3)
    parser.add_argument("--games", type=int, default=3)
    options = parser.parse_args()
    generator = np.random.default_rng(0)
    dealer = Dealer(HouseholdRules(max_receptacles=12, num_objects=12))
    world = TextWorld()
    ours: list[float] = []
    theirs: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.games):
            game = dealer.deal(generator)
            path = write_game(game, Path(folder), trial=f"trial_{number}")
            commands = random_walk(game, generator)
            for _ in range(options.runs):
                ours.append(household_milliseconds(game, commands))
                theirs.append(textworld_milliseconds(world, path, commands))
    ratios = [slow / fast for slow, fast in zip(theirs, ours, strict=True)]
    rows = {
        "household, ms per step": spread(ours),
        "TextWorld, ms per step": spread(theirs),
        "TextWorld / household": spread(ratios),
        "walks": f"{options.games} games, {options.runs} runs, {NUM_STEPS} steps",
    }
    finish("Household against TextWorld (median, least, greatest)", rows, options.json)


if __name__ == "__main__":
    main()
