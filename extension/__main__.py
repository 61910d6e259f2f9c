"""Runs the command `dynascope` for `python -m dynascope`."""

import sys

from dynascope.cli import main

if __name__ == "__main__":
    sys.exit(main())
