"""`python -m tpucfg` and the console script."""

import sys


def main() -> None:
    """Runs the command line; the process ends with its exit status."""
    from tpucfg.cli.app import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
