"""Values as YAML text that every reader takes the same way.

YAML 1.1 (PyYAML, which most trainers use) and YAML 1.2 disagree about `no`, `12:30`, `1e-3`, `0o17` and more, so a
string is written plain only where no version could read it as anything else. Numbers are plain digits.
"""

import json
import re
from typing import Any, Final

_PLAIN: Final = re.compile(r"[A-Za-z/][A-Za-z0-9_./@=+-]*(?::[A-Za-z0-9_./@=+-]+)*")
"""Starts with a letter or a slash, so it is no number in any version; `:` only before more text."""
_WORDS: Final = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null", "none", "nan", "inf"))
"""In any case; quoted even where only one version minds."""
_FITS_BLOCK: Final = re.compile(r"[!-~][ -~]*\n(?:[ -~]*\n)*")
"""Lines of printable ASCII, the first without an indent of its own: a literal block keeps them to the letter."""
_ESCAPES: Final = {0x7F: "\\x7f", 0x85: "\\x85", 0x2028: "\\u2028", 0x2029: "\\u2029", 0xFEFF: "\\ufeff", 0xA0: "\\xa0"}


def to_yaml(value: Any, indent: int = 0) -> str:
    """The value behind a key at that indent: a scalar on the key's line, anything else below it."""
    if isinstance(value, dict) and value:
        return "".join(f"\n{' ' * indent}{entry(key, item, indent)}" for key, item in value.items())
    if isinstance(value, list) and value:
        return "".join(f"\n{' ' * indent}-{_item(item, indent)}" for item in value)
    return f" {_scalar(value, indent)}"


def entry(key: str, value: Any, indent: int = 0) -> str:
    """A key with its value. A list stands at its key's own indent, a mapping two deeper."""
    deeper = indent if isinstance(value, list) else indent + 2
    return f"{scalar(key)}:{to_yaml(value, deeper)}"


def _item(value: Any, indent: int) -> str:
    """An entry of a list: a mapping begins on the dash's own line."""
    if isinstance(value, dict | list) and value:
        return " " + to_yaml(value, indent + 2)[indent + 3 :]
    return f" {_scalar(value, indent + 2)}"


def _scalar(value: Any, indent: int) -> str:
    if isinstance(value, str) and "\n" in value and _FITS_BLOCK.fullmatch(value) and not value.endswith("\n\n"):
        pad = " " * max(indent, 2)
        return "|\n" + "\n".join(f"{pad}{line}" if line else "" for line in value[:-1].split("\n"))
    return scalar(value)


def scalar(value: Any) -> str:
    """A value without parts, on one line."""
    if isinstance(value, str):
        if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
            return value
        return json.dumps(value, ensure_ascii=False).translate(_ESCAPES)
    if isinstance(value, float) and not value.is_integer():
        return _float(value)
    return json.dumps(value)


def _float(value: float) -> str:
    """Digits and a point: `1e-05` is a number under YAML 1.2 and text under 1.1."""
    text = repr(value)
    return format(value, f".{_decimals(text)}f") if "e" in text else text


def _decimals(text: str) -> int:
    mantissa, _, exponent = text.partition("e")
    return max(len(mantissa.partition(".")[2]) - int(exponent), 1)
