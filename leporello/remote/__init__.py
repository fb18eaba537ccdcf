"""Files and runs at URLs: S3, GCS, the web, and whatever else fsspec knows.

Reading is what every other module needs; runs at URLs are `leporello.remote.runs` and `.views`.
"""

from leporello.remote.addresses import is_url
from leporello.remote.paths import RemotePath, on_disk, place

__all__ = ["RemotePath", "is_url", "on_disk", "place"]
