"""Checks that classes have the constructor and methods that their kinds require."""

import inspect

from leporello.config.parameters import parameters
from leporello.core.annotations import fault_of_declarations
from leporello.core.calls.contracts import PARAMETERS, index_methods
from leporello.core.errors import did_you_mean
from leporello.core.protocols import KINDS, Kind

# Parameters of methods that are called with positional arguments.
_POSITIONAL = {
    "statistics": ("prediction", "example"),
    "aggregate": ("statistics",),
}
# Signatures, for messages, of methods that take either questions or examples.
_EITHER = {
    "retrieve": "(questions, chunks) or (examples, chunks)",
    "search": "(index, questions) or (index, examples), and may take 'chunks'",
}


def fault_of_class(cls: type, kind: Kind) -> str | None:
    """Returns the first fault of a class's constructor, methods and declarations, or None."""
    try:
        parameters(cls)
    except Exception as error:  # evaluating a plug-in's annotations runs its code
        return f"{cls.__name__}'s constructor cannot be checked: {type(error).__name__}: {error}"
    return check_methods(cls, kind) or fault_of_declarations(cls)


def check_methods(cls: type, kind: Kind) -> str | None:
    """Returns the first fault of a class's methods, as required by its kind, or None."""
    for method in kind.methods:
        function = getattr(cls, method, None)
        if not callable(function):
            return f"{cls.__name__} is not a valid {kind.key}: it has no method {method!r}"
        check = _check_count if kind.table else _check_parameters
        if problem := check(cls, method):
            return problem
    return _check_index(cls) if kind is KINDS["retriever"] else None


def _check_count(cls: type, method: str) -> str | None:
    """Returns the fault of a method that is called with positional arguments, or None."""
    expected = _POSITIONAL.get(method, ())
    try:
        if expected:
            inspect.signature(getattr(cls, method)).bind(cls, *expected)
    except TypeError as error:
        return f"{cls.__name__}.{method} must take ({', '.join(expected)}): {error}"
    return None


def _check_parameters(cls: type, method: str) -> str | None:
    required, optional = map(set, PARAMETERS.get(method, ((), ())))
    signature = inspect.signature(getattr(cls, method))
    static = isinstance(inspect.getattr_static(cls, method), (staticmethod, classmethod))
    names = list(signature.parameters)[0 if static else 1 :]  # without self
    wrong = [name for name in names if name not in required | optional]
    asks = method not in _EITHER or {"questions", "examples"} & set(names)
    if not wrong and required <= set(names) and asks:
        return None
    allowed = _EITHER.get(
        method,
        f"({', '.join(sorted(required))})"
        + "".join(f", and may take {name!r}" for name in sorted(optional)),
    )
    return f"{cls.__name__}.{method} takes ({', '.join(names)}); it must take {allowed}"


def _check_index(cls: type) -> str | None:
    methods = index_methods(cls)
    if len(methods) == 1:
        missing = "search" if methods == ("index",) else "index"
        return (
            f"{cls.__name__} has a method {methods[0]!r} but no {missing!r}; a retriever with a"
            f" cached index has both: add {missing!r}, or rename {methods[0]!r}"
        )
    problems = (_check_parameters(cls, method) for method in methods)
    return next(filter(None, problems), None) or _check_search_only(cls)


def _check_search_only(cls: type) -> str | None:
    names = getattr(cls, "search_only", ())
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        return (
            f"{cls.__name__}.search_only is {names!r}; it must be a tuple of the names of"
            ' parameters that do not change the index, such as ("k",)'
        )
    allowed = parameters(cls) if names else {}
    for name in names:
        if name not in allowed:
            hint = did_you_mean(name, allowed)
            return f"{cls.__name__}.search_only contains {name!r}, which is not a parameter{hint}"
    return None
