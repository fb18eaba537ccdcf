"""Entry point of `python -m tests.attack`."""

from tests.attack.program import main

if __name__ == "__main__":
    main()
