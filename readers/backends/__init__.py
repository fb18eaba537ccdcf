"""Backends, the libraries that run models.

They handle tokens, not a `Read`. Begin with `backend`, which has the protocol and the table;
transformers is the reference for the others.
"""
