"""docs/reference/spec.md: every key of tpucfg.yaml, from its schema."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

import yaml

from refpages import GENERATED, prose
from refpages.keys import Key, Schema, keys
from refpages.schema_text import form_of, type_of
from tpucfg.spec.placeholders import PLACEHOLDERS

_INTRO: Final = """\
# The spec

`tpucfg.yaml`, format version 1, is the only file that you write. It is YAML 1.2, or JSON. Any key that is not on this
page is an error, and the error suggests the nearest valid key. `tpucfg schema` prints these rules as a JSON Schema. The
first line of a new spec refers to it, so that an editor completes and explains the keys.

Values are literal: nothing is evaluated, and environment variables are not substituted.

`capacity`, `trainer` and `targets` are layered: they can also be set in an environment, in a size's override, and in a
size's override within an environment. [Settings by environment and size](../layers.md) describes how they merge; their
keys are listed here once.
"""
_PLACEHOLDERS: Final = """\
## Placeholders

In `trainer.args`, `trainer.env`, `trainer.mounts`, `trainer.image`, `trainer.worker_image` and `trainer.package`, in
every layer, and nowhere else, these placeholders are replaced. `$${` writes `${`; an unknown or unclosed
placeholder is [TPU009](../findings/keys.md#tpu009).

| placeholder | replaced by |
|---|---|
"""
_TOP: Final = "The project"


def page(schema: Schema) -> str:
    """Return the page's text."""
    all_keys = [*keys(schema)]
    parts = (f"{GENERATED}\n\n", _INTRO, "\n", *_overview(all_keys), "\n", *_sections(all_keys), *_placeholders())
    return "".join(parts)


def _overview(all_keys: Sequence[Key]) -> Iterator[str]:
    yield "| key | | |\n|---|---|---|\n"
    for key in all_keys:
        if len(key.path) == 1:
            need = "required" if key.required else ""
            yield f"| [`{key.dotted}`](#{key.anchor}) | {need} | {prose(key.schema['description'])} |\n"


def _sections(all_keys: Sequence[Key]) -> Iterator[str]:
    """Yield a section for each top-level mapping; all other top-level keys share the first section."""
    mappings = {key.path[0] for key in all_keys if len(key.path) > 1}
    for section, group in groupby(all_keys, lambda key: key.path[0] if key.path[0] in mappings else _TOP):
        if section == _TOP:
            yield f"## {_TOP}\n\n"
        for key in group:
            yield from _entry(key)


def _entry(key: Key) -> Iterator[str]:
    section = len(key.path) == 1 and key.schema.get("type") == "object"
    yield f"{'##' if section else '###'} `{key.dotted}`\n\n"
    yield f"{prose(key.schema['description'])}\n\n"
    for name, text in _facts(key):
        yield f"- **{name}**: {text}\n"
    yield f"\n```yaml\n{_example(key)}```\n\n"


def _facts(key: Key) -> Iterator[tuple[str, str]]:
    yield "Type", type_of(key.schema)
    if key.required:
        yield "Required", "yes"
    if "default" in key.schema:
        yield "Default", f"`{_text(key.schema['default'])}`"
    if clauses := "; ".join(form_of(key.schema)):
        yield "Takes", prose(clauses)


def _example(key: Key) -> str:
    """Return the schema's first example, at its position in a spec."""
    *above, last = key.instances
    value: Any = key.schema["examples"][0]
    lines = [f"{'  ' * depth}{step}:" for depth, step in enumerate(above)]
    inside = "  " * len(above)
    if isinstance(value, dict):
        lines += [f"{inside}{last}:", *(f"{inside}  {name}: {_text(below)}" for name, below in value.items())]
    else:
        lines.append(f"{inside}{last}: {_text(value)}")
    return "".join(f"{line}\n" for line in lines)


def _text(value: object) -> str:
    """Return the value on one line, as YAML."""
    return str(yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=1000)).partition("\n")[0]


def _placeholders() -> Iterator[str]:
    yield _PLACEHOLDERS
    yield from (f"| `${{{name}}}` | {meaning} |\n" for name, meaning in PLACEHOLDERS.items())
