"""What a plug-in's author runs in pytest: one contract class for each kind of thing.

```python
from leporello.testing import RetrieverContract


class TestMine(RetrieverContract):
    make = Mine
```

It is the only room that imports pytest, and may touch all rooms before it. Begin with `contract`,
what holds for every kind, then `text_contract`, what holds for the stages of a pipeline.
"""

from __future__ import annotations

from leporello.testing.data import LoaderContract, MetricContract, TaskContract
from leporello.testing.stages import (
    ChunkerContract,
    CombinerContract,
    EnricherContract,
    ReaderContract,
    RetrieverContract,
)

__all__ = [
    "ChunkerContract",
    "CombinerContract",
    "EnricherContract",
    "LoaderContract",
    "MetricContract",
    "ReaderContract",
    "RetrieverContract",
    "TaskContract",
]
