import subprocess
import sys

import pytest

HEAVY = ("torch", "transformers", "peft")


def loaded_after(statement: str) -> set[str]:
    """Return which heavy packages a fresh interpreter has loaded after `statement`."""
    code = f"{statement}\nimport sys\nprint(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "statement",
    [
        "import gtr_turbo",
        "import gtr_turbo.errors",
        "import gtr_turbo.core.turns",
        "import gtr_turbo.core.config",
        "import gtr_turbo.envs",
        "import gtr_turbo.envs.registry",
        "import gtr_turbo.envs.points24",
        "import gtr_turbo.merging",
        "import gtr_turbo.merging.arrays.merge, gtr_turbo.merging.arrays.sources",
        "import gtr_turbo.presets",
    ],
)
def test_light_parts_stay_light(statement: str) -> None:
    assert loaded_after(statement) == set()


@pytest.mark.parametrize(
    "module", ["gtr_turbo.ops", "gtr_turbo.merging.api", "gtr_turbo.core.batch"]
)
def test_the_mathematics_needs_torch_alone(module: str) -> None:
    assert loaded_after(f"import {module}") <= {"torch"}
