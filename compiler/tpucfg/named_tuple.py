"""Named tuples that are cheap to define, for the modules that most commands import.

`typing.NamedTuple` compiles a constructor for each class. A command that renders one config defines seventy of
them, and took a third of its own time for that. These classes share one constructor, and are defined ten times as fast.
"""

from typing import TYPE_CHECKING, Any

__all__ = ["NamedTuple"]

if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from collections import (
        _tuplegetter,
    )  # reads a field five times as fast as a property, where it is in C

    class _Definition(type):
        def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> type:
            new = super().__new__(cls, name, bases, {"__slots__": (), **namespace})
            if fields := tuple(new.__annotations__):
                new._fields = new.__match_args__ = fields
                new._field_defaults = {
                    field: namespace[field] for field in fields if field in namespace
                }
                for index, field in enumerate(fields):
                    setattr(new, field, _tuplegetter(index, None))
            return new

    class NamedTuple(tuple, metaclass=_Definition):
        """A tuple whose fields are the annotations of its class."""

        __slots__ = ()

        def __new__(cls, *values: Any, **named: Any) -> Any:  # noqa: D102 - the fields of each class
            if named or len(values) != len(cls._fields):
                rest = cls._fields[len(values) :]
                # As many names as fields are left need no default, and each is looked up below.
                given = named if len(named) == len(rest) else cls._field_defaults | named
                try:
                    if not rest or (given is not named and not named.keys() <= {*rest}):
                        raise KeyError  # noqa: TRY301 - all mistakes have one message
                    values += tuple(map(given.__getitem__, rest))
                except KeyError:
                    raise TypeError(
                        f"{cls.__name__} cannot be made of {len(values)} values and {[*named]}"
                    ) from None
            return tuple.__new__(cls, values)

        def _replace(self, **named: Any) -> Any:
            values = tuple(map(named.pop, self._fields, self))
            if named:
                raise TypeError(f"{type(self).__name__} has no field {', '.join(named)}")
            return tuple.__new__(type(self), values)

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self, strict=True))

        def __repr__(self) -> str:
            return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"

        def __getnewargs__(self) -> tuple[Any, ...]:
            return tuple(self)
