"""Trains the judge of statements that recur in contracts. Begin with `recipe`."""
