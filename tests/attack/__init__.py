"""Families of attacks on the installed command line; `program` runs them.

A family is a module with `case(random, number)`, which returns a `Case`.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "support"))
