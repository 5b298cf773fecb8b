"""Credentials written into a spec: findings that ask for a reference to Secret Manager, and texts without the values.

The name of its key shows that a value is a credential (`secret_names`), or the value has the form of a known token
(`redaction`). https://cloud.google.com/secret-manager keeps such values, and `trainer.secrets` refers to them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final

from tpucfg.findings import Finding
from tpucfg.named_tuple import NamedTuple
from tpucfg.spec.layers import PROBE, present_layers
from tpucfg.text_format import dotted, split_lines
from tpucfg.yamldoc import Document, KeyPath, Node

_HINTS: Final = str.split(
    "key token secret pass pwd cred dsn pat ya29 aiza ghp_ gho_ ghu_ ghs_ ghr_ pul- hf_ sk- akia xox eyj bearer hooks"
    " @ ********"
)
"""One of them occurs in every name of a credential, in every token of a known form and in place of a hidden one.

A text without them needs no search.
"""
_REFERENCES: Final = frozenset(("secrets", "image_pull_secrets"))
"""Keys whose values are names of secrets, and no credentials."""
_PAIR: Final = frozenset(("name", "value"))
"""The keys of an environment variable in a pod."""
_ROW: Final = r"""^\s*(?:- )?["']?(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)["']?\s*:\s+(?P<value>\S.*)$"""
"""A key and its value, in a text that is not YAML."""
_HEX_KEY: Final = "[0-9a-f]{32,}"
"""The form of many keys, such as those of Weights & Biases; also that of a commit, so it counts only as a secret."""
_NAME_OF_FLAG: Final = r"[A-Za-z_][A-Za-z0-9_.-]{0,98}"
_SETTING: Final = r"[a-z]{1,16}(?:[_-][a-z]{1,16}){0,3}"
"""A word in lower case, or several, as programs name the values of a setting."""
_BLANK: Final = "*"
_NAME: Final = "name"
_FORM: Final = "form"


# secret_names is imported in use, as most specs do not pass the filter above.
def _is_secret_name(name: str) -> bool:
    from tpucfg.secret_names import is_secret_name

    return is_secret_name(name)


def _is_secret_value(name: str, text: str) -> bool:
    from tpucfg.secret_names import is_secret_value

    # A setting such as `key_proj: offload` has the word of a credential before another one, and a word as its value.
    if re.fullmatch(_SETTING, text.strip()) and not _is_secret_name(f"api_{re.split('[_.-]', name)[-1]}"):
        return False
    return is_secret_value(text, may_be_number=False)


def _may_have_credentials(text: str) -> bool:
    text = text.casefold()
    return any(hint in text for hint in _HINTS)


def _has_token(node: Node | None) -> bool:
    if node is None or not isinstance(node.value, str) or not _may_have_credentials(node.value):
        return False
    from tpucfg.redaction import has_token

    return has_token(node.value)


class Credential(NamedTuple):
    """A value of the program or of `extra` that is a credential by its name, or has the form of a known token."""

    path: KeyPath
    """The path of the variable or flag in the spec."""
    layer: KeyPath
    """The path of the layer that sets it."""
    values: tuple[KeyPath, ...]
    """The path of each value: a flag may have a list of them."""
    name: str
    """The name of the variable, flag or field."""
    is_variable: bool = True
    """False for a flag and a field, whose value the program has to read from a variable instead."""
    by: str = _NAME
    """The part that shows it: `name` or `form`."""

    @property
    def variable(self) -> str:
        """The environment variable in which the program can receive the value."""
        return self.name if self.is_variable else re.sub(r"[^A-Z0-9]", "_", self.name.upper()).strip("_")

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
        return f"store the value in Secret Manager, and replace it by {self.reference} under {section}"


def credentials_in(document: Document) -> Iterator[Credential]:
    """Yield the credentials in the variables, the flags and `extra` of every layer; the document may be invalid."""
    if not _may_have_credentials(document.text):
        return
    for layer in present_layers(document):
        for keys in (("trainer", "env"), ("trainer", "args"), ("args",)):
            node = document.node((*layer, *keys))
            for name in node.keys if node else ():
                path: KeyPath = (*layer, *keys, name)
                is_variable = keys[-1] == "env"
                if _is_secret_name(name) and (values := tuple(_secret_values(document, path))):
                    yield Credential(path, layer, values, name, is_variable)
                elif values := tuple(value for value in _values(document, path) if _has_token(document.node(value))):
                    yield Credential(path, layer, values, name, is_variable, _FORM)
        yield from _in_words(document, layer)
        yield from _in_extra(document, layer)
        yield from _in_secrets(document, layer)


def _in_secrets(document: Document, layer: KeyPath) -> Iterator[Credential]:
    """Yield the values of `trainer.secrets` that have the form of a credential, and name no secret."""
    path = (*layer, "trainer", "secrets")
    node = document.node(path)
    for name in node.keys if node else ():
        text = document.node((*path, name))
        if _has_token(text) or (text and re.fullmatch(_HEX_KEY, str(text.value))):
            yield Credential((*path, name), layer, ((*path, name),), name, by=_FORM)


def _in_extra(document: Document, layer: KeyPath) -> Iterator[Credential]:
    targets = document.node((*layer, "targets"))
    for target in targets.keys if targets else ():
        path = (*layer, "targets", target, "extra")
        if extra := document.node(path):
            for field, _, name, by in _secrets_below(extra, path, ""):
                yield Credential(field, layer, (field,), name, field[-1] == "value", by)


def _in_words(document: Document, layer: KeyPath) -> Iterator[Credential]:
    """Yield the credentials in the lists of words of a layer: `--api_key=…`, or a text with a token of a known form."""
    for keys in (("trainer", "command"), ("trainer", "args"), ("args",)):
        path = (*layer, *keys)
        node = document.node(path)
        if node and isinstance(node.value, list):
            for field, word, _, by in _secrets_below(node, path, ""):
                name = _named_secret(word) or "TOKEN"
                yield Credential(field, layer, (field,), name, is_variable=False, by=by)


def _named_secret(node: Node) -> str:
    """Return the name of a credential in a word `--name=value`; empty if it has none."""
    name, _, value = node.value.removeprefix("--").partition("=") if isinstance(node.value, str) else ("", "", "")
    if not value or "${" in value or not re.fullmatch(_NAME_OF_FLAG, name):
        return ""
    return name if _is_secret_name(name) and _is_secret_value(name, value) else ""


def _secrets_below(node: Node, path: KeyPath, name: str) -> Iterator[tuple[KeyPath, Node, str, str]]:
    """Yield the path, the node and the name of each scalar that is a credential, and the part that shows it.

    Args:
        node: The value.
        path: Its path.
        name: Its key, or the name of its variable.
    """
    for step, child, inner in _children(node, name):
        yield from _secrets_below(child, (*path, step), inner)
    if isinstance(node.value, dict | list):
        return
    if name and _is_secret_name(name) and _is_credential(node, name):
        yield path, node, name, _NAME
    elif _has_token(node):
        yield path, node, name, _FORM
    elif word := _named_secret(node):
        yield path, node, word, _NAME


def _children(node: Node, name: str) -> Iterator[tuple[str | int, Node, str]]:
    """Yield the key, the value and the name of each item of a node with a name."""
    children: Any = node.children
    if isinstance(node.value, dict):
        pair = node.children["name"].value if node.value.keys() == _PAIR else None  # type: ignore[call-overload] # a mapping
        for key, child in children.items():
            if key not in _REFERENCES:
                yield key, child, pair if key == "value" and isinstance(pair, str) else key
    elif isinstance(node.value, list):
        for index, child in enumerate(children):
            yield index, child, name


def credential_finding(document: Document, credential: Credential, hint: str, lines: Sequence[str] = ()) -> Finding:
    """Return the error about a credential, with the edit and the lines that it refers to."""
    subject = f"{dotted(credential.path)} has the {credential.by} of a credential"
    message = f"{subject}, readable in the spec, the config and the job"
    details = (f"secrets reach the program as environment variables: it has to read {credential.variable}",)
    return Finding.of(
        "TPU017",
        message,
        document.key_location(credential.path),
        help=hint,
        details=(*(() if credential.is_variable else details), *lines),
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
    rows = split_lines(document.text)
    for _, secret, _, _ in _secrets_below(document.root, (), ""):
        _hide(rows, secret)
    for credential in chain.from_iterable(_in_secrets(document, layer) for layer in present_layers(document)):
        if node := document.node(credential.path):
            _hide(rows, node)
    return "\n".join(rows)


def _values(document: Document, path: KeyPath) -> list[KeyPath]:
    """Return the path of each item of a list, or the path of a single value."""
    node = document.node(path)
    count = len(node.children) if node and isinstance(node.value, list) else 0
    return [(*path, index) for index in range(count)] or [path]


def _secret_values(document: Document, path: KeyPath) -> Iterator[KeyPath]:
    return (value for value in _values(document, path) if _is_credential(document.node(value), str(path[-1])))


def _is_credential(node: Node | None, name: str) -> bool:
    """Return True for a scalar that is no boolean, number, path or placeholder."""
    if node is None or node.value is None or isinstance(node.value, bool | dict | list):
        return False
    text = node.value if isinstance(node.value, str) else node.text
    return not text.startswith("${") and _is_secret_value(name, text)


def _hide(rows: list[str], node: Node) -> None:
    """Replace the characters of a node by asterisks, without its indentation and line breaks."""
    for line in range(node.start.line, min(node.end.line + 1, len(rows))):
        row = rows[line]
        start = node.start.column if line == node.start.line else 0
        end = node.end.column if line == node.end.line else len(row)
        rows[line] = row[:start] + _blank(row[start:end]) + row[end:]


def _hidden_row(row: str) -> str:
    from tpucfg.redaction import has_token

    match = re.match(_ROW, row)
    if has_token(row):
        return _blank(row) if match is None else row[: match.start("value")] + _blank(match["value"])
    if (
        match is None
        or not _is_secret_name(match["name"])
        or not _is_secret_value(match["name"], match["value"].strip("\"' "))
    ):
        return row
    return row[: match.start("value")] + _blank(match["value"])


def _blank(text: str) -> str:
    # The length stays, so that the underlines of a report stay below what they mark.
    return re.sub(r"\S.*", lambda match: _BLANK * len(match[0]), text)
