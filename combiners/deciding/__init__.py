"""Combiners that choose among other combiners, or check answers; begin with `cascade`."""
