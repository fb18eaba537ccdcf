"""Contracts that authors of plug-ins run in pytest: one test class for each kind of plug-in.

```python
from leporello.testing import RetrieverContract


class TestMine(RetrieverContract):
    make = Mine
```

It is the only package that imports pytest, and may use all packages before it. Begin with
`contract`, the tests of every kind, then `text_contract`, the tests of the stages of a pipeline.
"""

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
