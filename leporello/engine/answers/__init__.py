"""Layers between a combiner and the engine: typed answers."""
