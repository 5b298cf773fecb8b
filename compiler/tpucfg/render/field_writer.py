"""Write a request body's fields as YAML, where a config template places them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from tpucfg.yamldoc.writer import to_yaml, yaml_entry


class FieldWriter:
    """One mapping of a request body, written field by field and in the mapping's own order.

    A template lists the fields that a target writes, in the target's order, and ends with `others`. It thus shows the
    structure of its file, while fields that only the spec's `extra` adds are still written.
    """

    def __init__(self, mapping: dict[str, Any], indent: int = 0) -> None:
        self._mapping = mapping
        self._indent = indent
        self._unwritten = list(mapping)
        self._margin = ""
        """The indent of the next field. Empty for the first field, which the template itself indents."""

    def value(self, key: str) -> str:
        """Return the value of a key that the template writes itself."""
        value = self._take(key)
        return to_yaml(value, self._indent if isinstance(value, list) else self._indent + 2)

    def nested(self, key: str) -> "FieldWriter":
        """Return a writer for the mapping of a key that the template writes itself."""
        return FieldWriter(self._take(key), self._indent + 2)

    def entries(self, key: str) -> Iterator["FieldWriter"]:
        """Yield a writer for each mapping in the list of a key that the template writes itself."""
        return (FieldWriter(item, self._indent + 2) for item in self._take(key))

    def documents(self) -> "Iterator[tuple[str, FieldWriter]]":
        """Yield each key with a writer for its mapping, which the template writes as a document of its own."""
        return ((key, FieldWriter(self._take(key))) for key in self._unwritten.copy())

    def field(self, key: str) -> str:
        """Return the lines of the field if it is the next one, and nothing otherwise.

        `extra` adds fields at a mapping's end, and replaces a list by mappings whose keys have another order. A field
        that is not next is left to `others`, so that the order is kept.
        """
        return self._lines(key) if self._unwritten and self._unwritten[0] == key else ""

    def others(self) -> str:
        """Return the lines of all fields that are not written yet."""
        return "".join([self._lines(key) for key in self._unwritten.copy()]) if self._unwritten else ""

    def _lines(self, key: str) -> str:
        margin = self._margin
        return f"{margin}{yaml_entry(key, self._take(key), self._indent)}\n"

    def _take(self, key: str) -> Any:
        self._unwritten.remove(key)
        self._margin = " " * self._indent
        return self._mapping[key]


# Filters, because jinja2 calls a filter directly, but a method only after checks that take longer than the method.
FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "value": FieldWriter.value,
    "nested": FieldWriter.nested,
    "entries": FieldWriter.entries,
    "documents": FieldWriter.documents,
    "field": FieldWriter.field,
    "others": FieldWriter.others,
}
