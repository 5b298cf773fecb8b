"""JSON is almost a part of YAML; here the two habits that YAML's parsers do not share become YAML's."""

import re
from typing import Final

_STRING_OR_TAB: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?|\t', re.DOTALL)
"""Possessive, and with the end of the string optional: a long text without one is passed once, not from every quote."""
_ESCAPE: Final = re.compile(r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|.)", re.DOTALL)


def json_to_yaml(text: str) -> str:
    """Blanks for the tabs between values, and one escape for a pair of surrogates. Nothing else changes its column."""
    return _STRING_OR_TAB.sub(_in_yaml, text)


def _in_yaml(match: re.Match[str]) -> str:
    part = match[0]
    if "\\u" in part:
        return _ESCAPE.sub(_joined, part).ljust(len(part))
    return " " if part == "\t" else part


def _joined(escape: re.Match[str]) -> str:
    if escape[1] is None:
        return escape[0]
    code = 0x10000 + ((int(escape[1], 16) - 0xD800) << 10) + (int(escape[2], 16) - 0xDC00)
    return f"\\U{code:08x}"
