"""Shared functions of retrievers for postings, rankings and embeddings, without retrievers.

Begin with `postings`, which computes lexical scores; `embedders` loads models and splits texts to
fit their input windows.
"""
