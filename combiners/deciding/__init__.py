"""Combiners that choose among other combiners, or check answers.

Begin with `cascade`; `leporello.core.calls.answers.confidence_of` computes probabilities.
"""
