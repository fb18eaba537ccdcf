"""Attacks on the installed command line, in families; `program` says how they are run.

A family is a module with `NAME` and `case(random, number)`, which returns a `Case`: there is
nothing to register it in.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "support"))
