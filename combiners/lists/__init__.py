"""What is read out of a reader's lists, and put together again.

Combiners share it; no combiner is here. Begin with `parse`.
"""
