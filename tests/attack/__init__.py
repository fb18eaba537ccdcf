"""Attacks on the installed command line, in families; `program` runs them.

A family is a module with `case(random, number)`, which returns a `Case`.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "support"))
