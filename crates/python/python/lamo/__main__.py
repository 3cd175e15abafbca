"""The command `lamo`: `python -m lamo train darcy`."""

import sys

from . import _lamo


def main() -> int:
    """Runs the command with the arguments of the process; its exit code."""
    return _lamo.main(["lamo", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
