"""Retrievers over what others found, and over what passages have to do with each other.

They may touch what `retrievers` touches. Begin with `mmr`.
"""
