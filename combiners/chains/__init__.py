"""Combiners that read in steps, each step with the outputs of earlier steps.

Begin with `chain_of_agents`; `outputs` has shared functions.
"""
