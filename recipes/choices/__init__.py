"""The ranker of options. Begin with `recipe`."""
