"""The judge of statements that recur in every contract. Begin with `recipe`."""
