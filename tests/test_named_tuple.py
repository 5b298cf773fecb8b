"""Named tuples that are cheap to define: they behave like those of `typing`."""

import copy
import pickle
import typing
from typing import Any

import pytest

from tpucfg import named_tuple


class Ours(named_tuple.NamedTuple):
    """A pair."""

    first: int
    second: str = "b"

    @property
    def both(self) -> str:
        """Both fields."""
        return f"{self.first}{self.second}"


class Theirs(typing.NamedTuple):
    """Its counterpart."""

    first: int
    second: str = "b"


@pytest.mark.parametrize(
    "make",
    [
        lambda kind: kind(1),
        lambda kind: kind(1, "c"),
        lambda kind: kind(second="c", first=1),
        lambda kind: kind(1)._replace(second="c"),
        lambda kind: kind(1)._asdict(),
        lambda kind: kind._fields,
        lambda kind: repr(kind(1)).partition("(")[2],
        lambda kind: copy.deepcopy(pickle.loads(pickle.dumps(kind(1)))).second,  # noqa: S301 - its own text
        lambda kind: hasattr(kind(1), "__dict__"),
    ],
)
def test_they_are_made_read_and_copied_alike(make: Any) -> None:
    """Values by position and by name, defaults, replacement and copies are those of `typing.NamedTuple`."""
    assert make(Ours) == make(Theirs)


@pytest.mark.parametrize(
    "make",
    [
        lambda kind: kind(),
        lambda kind: kind(1, "b", 2),
        lambda kind: kind(1, first=1),
        lambda kind: kind(1, third=1),
        lambda kind: kind(1, "b", second="b"),
    ],
)
def test_wrong_values_are_refused(make: Any) -> None:
    """A missing, a second and an unknown value are a TypeError, as for `typing.NamedTuple`."""
    for kind in (Ours, Theirs):
        with pytest.raises(TypeError):
            make(kind)


def test_methods_and_immutability() -> None:
    """A class has its own properties, and its fields cannot be set."""
    pair: Any = Ours(1)
    assert pair.both == "1b"
    with pytest.raises(AttributeError):
        pair.first = 2
