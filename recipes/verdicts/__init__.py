"""Trains the judge of claims and of yes/no questions. Begin with `recipe`."""
