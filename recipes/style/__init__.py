"""Trains `leporello-style`, a model that decides whether two texts have the same author."""
