"""Storage at URLs: downloads files by fsspec as local copies, and synchronises runs.

The package may access the network and the user's cache directory. Begin with `paths`, whose
`RemotePath` is downloaded when it is opened; `runs` handles runs at URLs.
"""

from leporello.storage.paths import RemotePath, is_url, on_disk, to_path

__all__ = ["RemotePath", "is_url", "on_disk", "to_path"]
