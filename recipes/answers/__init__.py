"""Trains the encoder that answers questions from passages: a span, yes, no, or nothing.

Questions and their split, negatives by our own retriever, groups of windows whose tokens compete,
the network and its loss, and the files that the reader `Embedded` reads. Begin with `recipe`.
"""
