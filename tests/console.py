"""The command line, run in this process: import the fixture `console` in a test file."""

from pathlib import Path

import pytest
import yaml

from gtr_turbo import cli
from gtr_turbo.core.config import Config, parse_config

TINY = ["--preset", "ezpoints-tiny"]


class Console:
    """Runs commands in this process and keeps what they printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def run(self, *arguments: str | Path) -> tuple[int, str, str]:
        """Return (exit code, output, errors)."""
        code = cli.main([str(argument) for argument in arguments])
        printed = self._capsys.readouterr()
        return code, printed.out, printed.err

    def config(self, *arguments: str | Path) -> Config:
        """Return what a dry run prints."""
        code, out, err = self.run("train", "--dry-run", *arguments)
        assert (code, err) == (0, "")
        return parse_config(yaml.safe_load(out))

    def refused(self, *arguments: str | Path) -> str:
        """Return the error text of a command that must be refused."""
        code, out, err = self.run(*arguments)
        assert code == 2
        assert out == ""
        assert "Traceback" not in err
        return err


@pytest.fixture
def console(capsys: pytest.CaptureFixture[str]) -> Console:
    return Console(capsys)
