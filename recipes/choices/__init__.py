"""Trains the ranker of multiple-choice options. Begin with `recipe`."""
