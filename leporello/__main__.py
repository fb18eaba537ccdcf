"""Runs the command line as `python -m leporello`."""

from leporello.cli import main

if __name__ == "__main__":
    main()
