"""Combiners that choose among other combiners, or check an answer.

Begin with `cascade`; `leporello.core.calls.answers.confidence_of` computes probabilities.
"""
