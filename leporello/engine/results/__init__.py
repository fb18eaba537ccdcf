"""Finished examples, reads and outputs as objects, and as the JSON in files and stores."""
