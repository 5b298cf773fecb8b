"""`${bucket}` and its like: a closed set, filled in by lookup. Nothing is ever evaluated."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tpucfg.findings import Finding
from tpucfg.spec.document import Document, Path
from tpucfg.wording import dotted, nearest, shown

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


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with its placeholders filled in, once: a value that looks like one stays. `$${` becomes `${`."""
    if "${" not in text:
        return text
    return _TOKEN.sub(lambda match: "${" if match[1] is None else values[match[1]], text)


def check_placeholders(document: Document) -> Iterator[Finding]:
    """Unknown and unclosed ones where they are filled in, and any at all where they are not."""
    trainer = document.data["trainer"]
    for key in _IN_TRAINER:
        yield from _check(document, ("trainer", key), trainer.get(key))
    for size, override in document.data.get("overrides", {}).items():
        yield from _check(document, ("overrides", size, "args"), override.get("args"))
    for path, text in _texts(("targets",), document.data.get("targets", {})):
        if any(match[1] in PLACEHOLDERS for match in _TOKEN.finditer(text)):
            message = f"{dotted(path)} holds {shown(text)}, and no placeholder is replaced there"
            hint = f"write the value itself; placeholders are replaced in trainer.{', trainer.'.join(_IN_TRAINER)}"
            yield Finding.of("TPU012", message, document.value(path), help=hint)


def _check(document: Document, path: Path, value: Any) -> Iterator[Finding]:
    for where, text in _texts(path, value):
        for match in _TOKEN.finditer(text):
            if match[0] != "$${" and match[1] not in PLACEHOLDERS:
                yield _wrong(match, where, document)


def _wrong(match: re.Match[str], path: Path, document: Document) -> Finding:
    """An unclosed one, an empty one, or one that is not known."""
    where, place = dotted(path), document.within(path, match[0])
    if match[1] is None:
        message, hint = f"{where} has a ${{ without its }}", "close it with }, or write $${ for the two characters ${"
        return Finding.of("TPU009", message, place, help=hint)
    near = nearest(match[1], tuple(PLACEHOLDERS))
    message = f"{where} has the unknown placeholder {shown(match[0], quoted=False)}"
    hint = f"did you mean ${{{near}}}?" if near else f"write ${shown(match[0], quoted=False)} if it is meant as text"
    known = f"there are: {', '.join(f'${{{key}}}' for key in PLACEHOLDERS)}"
    return Finding.of("TPU009", message, place, help=hint, details=(known,))


def _texts(path: Path, value: Any) -> Iterator[tuple[Path, str]]:
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
