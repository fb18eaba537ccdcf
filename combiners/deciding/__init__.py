"""Combiners that decide which other combiner answers, or whether an answer stands.

Begin with `cascade`; the probability of an answer is `leporello.core.calls.answers.confidence_of`.
"""
