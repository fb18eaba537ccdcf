"""Combiners that read in steps, each with what the steps before it said.

Begin with `chain_of_agents`; what they share is in `said`.
"""
