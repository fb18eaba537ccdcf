"""The command line: `python run_pipeline.py run`; `--help` lists the verbs."""

from leporello.cli import main

if __name__ == "__main__":
    main()
