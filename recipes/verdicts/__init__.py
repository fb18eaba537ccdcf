"""The judge of claims and of questions for yes or no. Begin with `recipe`."""
