"""Where documents are divided and selected from: in this process, or in processes beside it."""

from leporello.executors.groups import Executor, Group, Selection
from leporello.executors.here import Here
from leporello.executors.processes import Processes

__all__ = ["Executor", "Group", "Here", "Processes", "Selection"]
