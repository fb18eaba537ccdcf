"""Backends, the libraries that run models: a protocol, a table, and a module per library.

They handle tokens, not a `Read`. Begin with `backend`, the protocol, and `registry`, the table;
transformers is the reference for the others.
"""
