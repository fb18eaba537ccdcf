"""The command line: `python run_pipeline.py run`; `--help` tells the rest."""

from leporello.cli import main

if __name__ == "__main__":
    main()
