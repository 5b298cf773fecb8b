"""Text to the events of a YAML parser, and the parser's complaints as findings."""

from collections.abc import Iterator
from typing import Any, Final

import yaml

from tpucfg.findings import Finding, Place


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
    """The parser's events; its complaints become one finding."""
    try:
        parser = _Parser(text)
        while (event := parser.get_event()) is not None:
            yield event
    except yaml.MarkedYAMLError as error:
        raise StopError(_syntax(error, text, name)) from None
    except yaml.reader.ReaderError as error:
        raise StopError(_unreadable(error, text, name)) from None


def _syntax(error: yaml.MarkedYAMLError, text: str, name: str) -> Finding:
    mark: Any = error.problem_mark or error.context_mark
    problem = str(error.problem or error.context)
    tab = text[mark.index : mark.index + 1] == "\t" if mark else False
    place, begun = _at(mark, name), _at(error.context_mark, name)
    related = ((begun, str(error.context)),) if error.context_mark and begun != place else ()
    hint = "write spaces: YAML takes no tab there" if tab else ""
    return Finding.of("TPU002", f"this is not YAML: {problem}", place, help=hint, related=related)


def _at(mark: Any, name: str) -> Place:
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    return Place(name, line, column, line, column + 1)


def _unreadable(error: yaml.reader.ReaderError, text: str, name: str) -> Finding:
    """Here libyaml counts bytes and PyYAML characters, so the character is looked up in the text."""
    code = ord(error.character) if isinstance(error.character, str) else int(error.character)
    at = max(text.find(chr(code)), 0)
    line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
    message = f"the control character U+{code:04X} cannot stand in YAML"
    return Finding.of("TPU002", message, Place(name, line, column, line, column + 1), help="delete it")
