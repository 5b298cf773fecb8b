"""Text to the events of a YAML parser, and the parser's complaints as findings."""

from collections.abc import Iterator
from typing import Any, Final

import yaml

from tpucfg.findings import Finding
from tpucfg.spec.syntax import syntax_finding


class StopError(Exception):
    """The text cannot be read any further; carries the finding that says why."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


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


def events_of(text: str, name: str) -> Iterator[Any]:
    """The parser's events; its complaint becomes one finding. The text holds no character that YAML does not allow."""
    try:
        parser = _Parser(text)
        while (event := parser.get_event()) is not None:
            yield event
    except yaml.MarkedYAMLError as error:
        raise StopError(syntax_finding(error, text, name)) from None
