"""`python -m gtr_turbo` is `gtr-turbo`."""

import sys

from gtr_turbo.cli import main

if __name__ == "__main__":
    sys.exit(main())
