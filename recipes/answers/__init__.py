"""Trains the encoder that answers questions from passages: a span, yes, no, or nothing.

The modules read and split questions, find negatives with a retriever, make groups of windows whose
tokens compete, define the network and its loss, and write the files of the reader `Embedded`. Begin
with `recipe`.
"""
