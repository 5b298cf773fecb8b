"""Credentials written into a spec: findings that ask for a reference to Secret Manager, and texts without the values.

A value is a credential if it has the form of a known token, or looks generated under a credential's name (`redaction`).
https://cloud.google.com/secret-manager keeps such values, and `trainer.secrets` refers to them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

from tpucfg.findings import Finding
from tpucfg.named_tuple import NamedTuple
from tpucfg.paths import grouped
from tpucfg.spec.layers import LAYERED, PROBE, present_layers
from tpucfg.text_format import dotted, split_lines
from tpucfg.yamldoc import Document, KeyPath, Node

_HINTS: Final = str.split(
    "key token secret pass pwd cred dsn pat= ya29 aiza ghp_ gho_ ghu_ ghs_ ghr_ pul- hf_ sk- akia xox eyj bearer hooks"
    " begin @"
)
"""One of them occurs in every name of a credential, and in every token of a known form."""
_TEXT_HINTS: Final = tuple(hint.rstrip("=") for hint in _HINTS)
"""The hints in a text of YAML, where a colon may stand in place of `=`."""
_MIN_LENGTH: Final = 6
"""The least characters of a credential: an address with a password, `//u:p@h`, has more."""
_WORDS: Final = ("args", "command")
"""The keys of lists whose items have no names."""
_HEX_KEY: Final = "[0-9a-f]{32,}"
"""The form of many keys, such as those of Weights & Biases, which no secret has as its name."""
_FLAG: Final = r"(?:--)?(?P<name>[A-Za-z_][A-Za-z0-9_.-]{0,98})=(?P<value>.*)"
_BLANK: Final = "*"
_NAME: Final = "name"
_FORM: Final = "form"


# Cached because a spec's text is asked about three times.
@lru_cache(maxsize=1)
def _may_have_credentials(text: str) -> bool:
    """Return False if no name or value in a text has a hint, which saves most documents a search.

    A text between quotes may have escapes, and a hidden value is a row of asterisks.
    """
    text = text.casefold()
    return "\\" in text or _BLANK * _MIN_LENGTH in text or any(map(text.__contains__, _TEXT_HINTS))


class Credential(NamedTuple):
    """A value of the program or of `extra` that is a credential by its name, or has the form of a known token."""

    path: KeyPath
    """The path of the value in the spec; of a flag with several values, that of the flag."""
    layer: KeyPath
    """The path of the layer that sets it."""
    values: tuple[KeyPath, ...]
    """The path of each value."""
    name: str
    """The name of the variable, flag or field."""
    by: str
    """The part that shows it: `name` or `form`."""

    @property
    def is_variable(self) -> bool:
        """False for a flag and a field, whose value the program has to read from a variable instead."""
        return self.path[-2] in ("env", "secrets") or self.path[-1] == "value"

    @property
    def variable(self) -> str:
        """The environment variable in which the program can receive the value."""
        return (
            self.name
            if self.is_variable
            else re.sub(r"[^A-Z0-9]", "_", self.name.upper()).strip("_")
        )

    @property
    def reference(self) -> str:
        """The line of `trainer.secrets` that replaces the value."""
        return f"{self.variable}: {self.secret}/1"

    @property
    def secret(self) -> str:
        """The name proposed for the secret."""
        return self.variable.lower().replace("_", "-").strip("-")

    @property
    def help(self) -> str:
        """The edit that replaces the value by a reference."""
        section = dotted((*(() if self.layer == PROBE else self.layer), "trainer", "secrets"))
        return (
            f"store the value in Secret Manager, and replace it by {self.reference} under {section}"
        )


def credentials_in(document: Document) -> Iterator[Credential]:
    """Yield the credentials in the layered keys of every layer; the document may be invalid."""
    for layer in present_layers(document) if _may_have_credentials(document.text) else ():
        nodes = ((key, document.node((*layer, key))) for key in (*LAYERED, "args"))
        values = (
            value
            for key, node in nodes
            if node
            for value in _credentials_below(node, (*layer, key))
        )
        for path, of_path in grouped(
            (_without_index(value.path), value) for value in values
        ).items():
            name = "TOKEN" if of_path[0].name in _WORDS else of_path[0].name
            yield Credential(
                path, layer, tuple(value.path for value in of_path), name, of_path[0].by
            )


def _without_index(path: KeyPath) -> KeyPath:
    """Return the path of a flag for one of its values; a word of a command line has only its own."""
    return path[:-1] if isinstance(path[-1], int) and path[-2] not in _WORDS else path


class _Value(NamedTuple):
    """A scalar that is a credential."""

    path: KeyPath
    node: Node
    name: str
    """The key, the variable or the flag; empty for an item of a list."""
    by: str


def _credentials_below(node: Node, path: KeyPath, name: str = "") -> Iterator[_Value]:
    """Yield each scalar in a node that is a credential; `name` is its key, or the name of its variable."""
    if isinstance(node.value, dict | list):
        for step, child, inner in _children(node, name):
            yield from _credentials_below(child, (*path, step), inner)
    elif isinstance(node.value, str):
        credential, by = _credential_in(name, node.value)
        # Keys of trainer.secrets are names of credentials, and their values are names of secrets.
        if path[-2:-1] == ("secrets",):
            credential, by = (
                name,
                _FORM if re.fullmatch(_HEX_KEY, node.value) else _shown_by("", node.value),
            )
        if by:
            yield _Value(path, node, credential, by)


def _credential_in(name: str, text: str) -> tuple[str, str]:
    """Return the name of the credential that a text is, or has as `--name=value`, and what shows it; two empty ones."""
    by = _shown_by(name, text)
    flag = re.fullmatch(_FLAG, text) if not by and "=" in text else None
    if flag and _shown_by(flag["name"], flag["value"]):
        return flag["name"], _NAME
    return name, by


def _shown_by(name: str, text: str) -> str:
    """Return the part that shows that a text is a credential, its name or its form; empty if it is none."""
    if len(text) < _MIN_LENGTH or not any(hint in f"{name}={text}".casefold() for hint in _HINTS):
        return ""
    from tpucfg.redaction import (
        has_secret_name,
        has_token,
        is_random,
    )  # here, as most values have no hint

    if has_secret_name(name) and is_random(text):
        return _NAME
    return _FORM if has_token(text) else ""


def _children(node: Node, name: str) -> Iterator[tuple[str | int, Node, str]]:
    """Yield the key, the value and the name of each item of a node with a name."""
    children: Any = node.children
    if isinstance(node.value, list):
        yield from ((index, child, name) for index, child in enumerate(children))
        return
    pair = node.value["name"] if node.value.keys() == {"name", "value"} else None
    for key, child in children.items():
        yield key, child, pair if key == "value" and isinstance(pair, str) else key


def credential_finding(
    document: Document, credential: Credential, hint: str, lines: Sequence[str] = ()
) -> Finding:
    """Return the error about a credential, with the edit and the lines that it refers to."""
    subject = f"{dotted(credential.path)} has the {credential.by} of a credential"
    message = f"{subject}, readable in the spec, the config and the job"
    details = (
        f"secrets reach the program as environment variables: it has to read {credential.variable}",
    )
    details = (*(() if credential.is_variable else details), *lines)
    return document.finding(
        "TPU017", message, credential.path, at_key=True, help=hint, details=details
    )


def without_credentials(document: Document, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield schema findings; those about a credential of a wrong type get the edit for credentials, and no value."""
    by_location = {
        document.value_location(path): credential
        for credential in credentials_in(document)
        for path in credential.values
    }
    for finding in findings:
        credential = by_location.get(finding.location)
        if credential is None:
            yield finding
        else:
            message = f"{dotted(credential.path)} has the {credential.by} of a credential, and does not fit the schema"
            yield Finding.of(finding.id, message, finding.location, help=credential.help)


def hidden_text(document: Document) -> str:
    """Return the document's text for reports, with every credential's value replaced by as many asterisks."""
    if not _may_have_credentials(document.text):
        return document.text
    if document.root is None:
        return "\n".join(map(_hidden_row, document.text.split("\n")))
    credentials = [value.node for value in _credentials_below(document.root, ())]
    if not credentials:
        return document.text
    rows = split_lines(document.text)
    for node in credentials:
        _hide(rows, node)
    return "\n".join(rows)


def _hide(rows: list[str], node: Node) -> None:
    """Replace the characters of a node by asterisks, without its indentation and line breaks."""
    for line in range(node.start.line, min(node.end.line + 1, len(rows))):
        row = rows[line]
        start = node.start.column if line == node.start.line else 0
        end = node.end.column if line == node.end.line else len(row)
        rows[line] = row[:start] + _blank(row[start:end]) + row[end:]


def _hidden_row(row: str) -> str:
    """Return a line of a text that is not YAML without what a report would hide."""
    from tpucfg.redaction import SECRET, has_token, redact_row

    shown = "" if has_token(row) else redact_row(row).removesuffix(SECRET)
    return shown + _blank(row[len(shown) :])


def _blank(text: str) -> str:
    # The length stays, so that the underlines of a report stay below what they mark.
    return re.sub(r"\S.*", lambda match: _BLANK * len(match[0]), text)
