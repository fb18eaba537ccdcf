"""What a pipeline's YAML leaves open, of which `tune` takes one; begin with `space`."""

from leporello.config.space.space import Space, is_choice, space_of
from leporello.config.space.walk import Choice, NumberRange, Options, first

__all__ = ["Choice", "NumberRange", "Options", "Space", "first", "is_choice", "space_of"]
