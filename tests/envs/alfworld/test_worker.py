import subprocess
import sys

from gtr_turbo.envs.alfworld import worker


def test_importing_the_worker_loads_neither_torch_nor_alfworld() -> None:
    code = (
        f"import sys, {worker.__name__}, gtr_turbo.envs.alfworld.task\n"
        "print([m for m in ('torch', 'alfworld', 'textworld', 'ai2thor') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_worker_without_requests_ends_in_peace() -> None:
    command = [sys.executable, "-m", worker.__name__, "{}"]
    done = subprocess.run(command, input=b"", capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
