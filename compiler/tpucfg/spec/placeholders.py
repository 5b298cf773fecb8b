"""`${bucket}` and its like: a closed set, filled in by lookup. Nothing is ever evaluated."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tpucfg.findings import Finding
from tpucfg.text_format import dotted, format_value, nearest
from tpucfg.yamldoc.document import Document, KeyPath

PLACEHOLDERS: Final[Mapping[str, str]] = {
    "project": "the environment's Google project",
    "name": "the project's name",
    "env": "the environment's name",
    "region": "the environment's region",
    "bucket": "gs:// and the environment's bucket",
    "job_dir": "the job's own folder in the bucket",
    "size": "the size",
    "cores": "the slice's cores",
    "hosts": "the slice's hosts",
}
"""Every placeholder with its meaning."""

_TOKEN: Final = re.compile(r"\$\$\{|\$\{([^}]*)\}|\$\{")
_IN_TRAINER: Final = ("args", "env", "image", "worker_image", "package")


def fill_placeholders(text: str, values: Mapping[str, str]) -> str:
    """The text with its placeholders filled in, once: a value that looks like one stays. `$${` becomes `${`."""
    if "${" not in text:
        return text
    closed, open_ = _parted(text)
    return _TOKEN.sub(lambda match: "${" if match[1] is None else values[match[1]], closed) + open_.replace("$${", "${")


def _parted(text: str) -> tuple[str, str]:
    """The text up to its last }, and what follows: there, nobody looks for a } behind each of many ${."""
    end = text.rfind("}") + 1
    return text[:end], text[end:]


def _tokens(text: str) -> Iterator[tuple[str, str | None]]:
    """Every placeholder with its name, and without one what is not closed; `$${` is none."""
    closed, open_ = _parted(text)
    yield from ((match[0], match[1]) for match in _TOKEN.finditer(closed) if match[0] != "$${")
    yield from (("${", None) for _ in range(open_.replace("$${", " ").count("${")))


def placeholder_findings(document: Document) -> Iterator[Finding]:
    """Unknown and unclosed ones where they are filled in, and any at all where they are not."""
    trainer = document.data["trainer"]
    for key in _IN_TRAINER:
        yield from _check(document, ("trainer", key), trainer.get(key))
    for size, override in document.data.get("overrides", {}).items():
        yield from _check(document, ("overrides", size, "args"), override.get("args"))
    for path, text in _texts(("targets",), document.data.get("targets", {})):
        if any(name in PLACEHOLDERS for _, name in _tokens(text)):
            message = f"{dotted(path)} holds {format_value(text)}, and no placeholder is replaced there"
            hint = f"write the value itself; placeholders are replaced in trainer.{', trainer.'.join(_IN_TRAINER)}"
            yield Finding.of("TPU012", message, document.value(path), help=hint)


def _check(document: Document, path: KeyPath, value: Any) -> Iterator[Finding]:
    for where, text in _texts(path, value):
        for written, name in _tokens(text):
            if name not in PLACEHOLDERS:
                yield _wrong(written, name, where, document)


def _wrong(written: str, name: str | None, path: KeyPath, document: Document) -> Finding:
    """An unclosed one, an empty one, or one that is not known."""
    where, location = dotted(path), document.within(path, written)
    if name is None:
        message, hint = f"{where} has a ${{ without its }}", "close it with }, or write $${ for the two characters ${"
        return Finding.of("TPU009", message, location, help=hint)
    near = nearest(name, tuple(PLACEHOLDERS))
    message = f"{where} has the unknown placeholder {format_value(written, quoted=False)}"
    hint = (
        f"did you mean ${{{near}}}?" if near else f"write ${format_value(written, quoted=False)} if it is meant as text"
    )
    known = f"there are: {', '.join(f'${{{key}}}' for key in PLACEHOLDERS)}"
    return Finding.of("TPU009", message, location, help=hint, details=(known,))


def _texts(path: KeyPath, value: Any) -> Iterator[tuple[KeyPath, str]]:
    """Every text below the path that may hold one: as parsed, because an escape can hide it from the source."""
    if isinstance(value, str):
        if "${" in value:
            yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts((*path, key), item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts((*path, index), item)
