"""Text to the events of a YAML parser."""

from collections.abc import Iterator
from typing import Any, Final

import yaml


def _parser() -> Any:
    """The parser of libyaml, or PyYAML's own where there is no libyaml: the same events, thirty times as slow."""
    if yaml.__with_libyaml__:
        return yaml.cyaml.CParser  # type: ignore[attr-defined] # where libyaml is, it is there
    return type("Parser", (yaml.reader.Reader, yaml.scanner.Scanner, yaml.parser.Parser), {"__init__": _start_pure})


def _start_pure(self: Any, text: str) -> None:
    yaml.reader.Reader.__init__(self, text)
    yaml.scanner.Scanner.__init__(self)
    yaml.parser.Parser.__init__(self)


_Parser: Final = _parser()


def events_of(text: str) -> Iterator[Any]:
    """The parser's events, one by one. The text holds no character that YAML does not allow.

    Raises:
        yaml.MarkedYAMLError: While they are read: the text is not YAML from there on.
    """
    return iter(_Parser(text).get_event, None)
