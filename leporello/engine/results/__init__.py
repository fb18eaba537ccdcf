"""Finished examples, reads and outputs as objects, and as the JSON that files and stores hold."""
