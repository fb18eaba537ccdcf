"""What stands between a combiner and the engine: answers of a type."""
