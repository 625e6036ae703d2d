"""Opening a Gymnasium environment: which picture it has, which actions, and no noise."""

import io
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager, redirect_stdout
from functools import lru_cache
from importlib import import_module
from typing import Any, Final, TypeAlias

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from PIL import Image

from gtr_turbo.envs.drawing import Picture
from gtr_turbo.envs.gymnasium_task.rules import GymnasiumRules
from gtr_turbo.envs.gymnasium_task.text_picture import draw_text
from gtr_turbo.errors import ConfigError, TaskError, UnknownNameError, nearest_hint

Env: TypeAlias = gymnasium.Env[Any, Any]

PICTURE_KEY: Final = "pixels"
"""Under this key an observation of several parts holds its picture."""
_MIN_PICTURE_SIDE: Final = 16
"""Smaller arrays of three bytes a cell are codes of things, not pictures."""
_PICTURE_AXES: Final = 3


def find_spec(gym_id: str) -> EnvSpec:
    """Return what Gymnasium knows of an id, after importing the module that the id may name.

    Raises UnknownNameError for an unknown id, ConfigError for a module that can't be imported.
    """
    try:
        with quiet():
            module, _, name = gym_id.rpartition(":")
            if module:
                import_module(module)
            return gymnasium.spec(name)
    except ImportError as error:
        raise ConfigError(
            f'"gym:{gym_id}" needs a package that is not there: {error}.',
            hint="install it, or use the id without a module if Gymnasium knows it already.",
        ) from error
    except gymnasium.error.Error as error:
        raise UnknownNameError(
            f'Gymnasium knows no environment "{gym_id}": {str(error).rstrip(".")}.',
            hint=nearest_hint(gym_id, _near(gym_id), "ids of a like name"),
        ) from error


def _near(gym_id: str) -> list[str]:
    start = gym_id.rpartition(":")[2].partition("-")[0].casefold()
    return [name for name in gymnasium.registry if start and start in name.casefold()]


def open_env(gym_id: str, rules: GymnasiumRules) -> tuple[Env, str]:
    """Return the environment, and where its picture comes from.

    Raises ConfigError when it has no such picture, no usable actions, or refuses its arguments.
    """
    source = _try_source(gym_id, rules.model_dump_json())
    return _make(gym_id, rules, None if source == "observation" else source), source


@lru_cache(maxsize=256)
def _try_source(gym_id: str, rules_json: str) -> str:
    """Return where the picture comes from, after one has been drawn."""
    rules = GymnasiumRules.model_validate_json(rules_json)
    env = _make(gym_id, rules, None)
    if not isinstance(env.action_space, spaces.Discrete | spaces.Text):
        raise ConfigError(
            f'"gym:{gym_id}" has the action space {env.action_space}.',
            hint="numbered (Discrete) and written (Text) actions can be played by writing text.",
        )
    source = _picture_source(gym_id, env, rules.picture)
    if source != "observation":
        env.close()
        env = _make(gym_id, rules, source)
    try:
        with quiet():
            observation, _ = env.reset(seed=0)
            picture_of(env, observation, source, rules.picture_size)
    except gymnasium.error.DependencyNotInstalled as error:
        raise ConfigError(
            f'"gym:{gym_id}" can\'t draw its picture: {error}.',
            hint="install `gtr-turbo[gym]`, or take the rule `picture: ansi` where there is text.",
        ) from error
    env.close()
    return source


def _make(gym_id: str, rules: GymnasiumRules, render_mode: str | None) -> Env:
    arguments = rules.env_arguments
    if rules.max_steps is not None:
        arguments["max_episode_steps"] = rules.max_steps
    try:
        with quiet():
            return gymnasium.make(
                find_spec(gym_id), render_mode=render_mode, disable_env_checker=True, **arguments
            )
    except (TypeError, KeyError, ValueError, gymnasium.error.Error) as error:
        raise ConfigError(
            f'"gym:{gym_id}" can\'t be made with `kwargs` {list(rules.kwargs)}: {error!r}.'
        ) from error


def _picture_source(gym_id: str, env: Env, wanted: str) -> str:
    modes: list[str] = list(env.metadata.get("render_modes") or [])
    sources = [mode for mode in ("rgb_array", "ansi") if mode in modes]
    if _is_picture(_picture_space(env.observation_space)):
        sources.insert(0, "observation")
    if wanted in sources:
        return wanted
    if wanted == "auto" and sources:
        return sources[0]
    raise ConfigError(
        f'"gym:{gym_id}" has no picture of the kind "{wanted}".',
        hint=f"rule `picture` can be: {', '.join(sources) or 'nothing, so it is no task'}.",
    )


def _picture_space(space: gymnasium.Space[Any]) -> gymnasium.Space[Any]:
    return space[PICTURE_KEY] if isinstance(space, spaces.Dict) and PICTURE_KEY in space else space


def _is_picture(space: gymnasium.Space[Any]) -> bool:
    shape = space.shape
    return (
        isinstance(space, spaces.Box)
        and space.dtype == np.uint8
        and shape is not None
        and len(shape) == _PICTURE_AXES
        and shape[-1] == _PICTURE_AXES
        and min(shape[:2]) >= _MIN_PICTURE_SIDE
    )


def picture_of(env: Env, observation: Any, source: str, size: tuple[int, int] | None) -> Picture:
    """Return the picture of the present state. Raises TaskError when there is none."""
    if source == "observation":
        found = observation[PICTURE_KEY] if isinstance(observation, Mapping) else observation
    else:
        found = env.render()
    if source == "ansi":
        found = draw_text(str(found))
    picture = np.array(found)
    if picture.dtype != np.uint8 or picture.ndim != _PICTURE_AXES:
        raise TaskError(
            f"an environment drew {picture.dtype} of the shape {picture.shape}, not a picture."
        )
    if size is None or picture.shape[:2] == size:
        return picture
    scaled = Image.fromarray(picture).resize((size[1], size[0]), Image.Resampling.BOX)
    return np.asarray(scaled, dtype=np.uint8)


@contextmanager
def quiet() -> Generator[None]:
    """Keep what an environment prints, and its warnings, from the reader."""
    with redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
