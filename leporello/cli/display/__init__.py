"""Display of results in a terminal; with `cli`, the only package that imports rich.

Begin with `tables`.
"""
