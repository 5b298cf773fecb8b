"""Make JSON acceptable to a YAML parser, without moving any value to another column.

JSON is almost a subset of YAML. Two exceptions that YAML parsers reject: tabs between values, and characters written as
a pair of surrogate escapes.
"""

import re
from typing import Final

# Possessive, and with an optional closing quote: an unclosed string is scanned only once.
_STRING_OR_TAB: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?|\t', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|.)", re.DOTALL)


def json_to_yaml(text: str) -> str:
    """Replace tabs between values by blanks, and each pair of surrogate escapes by one escape."""
    return _STRING_OR_TAB.sub(_as_yaml, text)


def _as_yaml(match: re.Match[str]) -> str:
    part = match[0]
    if "\\u" in part:
        # Two escapes of 6 characters become one of 10: blanks after the string keep the later columns unchanged.
        return _ESCAPE.sub(_join_surrogates, part).ljust(len(part))
    return " " if part == "\t" else part


def _join_surrogates(escape: re.Match[str]) -> str:
    if escape[1] is None:
        return escape[0]
    code = 0x10000 + ((int(escape[1], 16) - 0xD800) << 10) + (int(escape[2], 16) - 0xDC00)
    return f"\\U{code:08x}"
