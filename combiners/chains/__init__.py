"""Combiners that read in steps, each step with the outputs of earlier steps."""
