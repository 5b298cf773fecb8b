"""docs/reference/spec.md: every key of tpucfg.yaml, from its schema."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

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

A row has a key's description, its type and requirements in italics, and an example without the keys above it.
"""
_PLACEHOLDERS: Final = """\
## Placeholders

In `trainer.command`, `trainer.args`, `trainer.env`, `trainer.mounts`, `trainer.image`, `trainer.worker_image` and
`trainer.package`, in every layer, and nowhere else, these placeholders are replaced. `$${` writes `${`; an unknown or
unclosed placeholder is [TPU009](../findings/keys.md#tpu009).

| placeholder | replaced by |
|---|---|
"""
_TOP: Final = "The project"
_OF_TARGETS: Final = "targets"
"""The mapping with a section for each of its keys."""
_TABLE: Final = "| key | meaning |\n|---|---|\n"


def page(schema: Schema) -> str:
    """Return the page's text."""
    all_keys = [*keys(schema)]
    parts = (
        f"{GENERATED}\n\n",
        _INTRO,
        "\n",
        *_overview(all_keys),
        "\n",
        *_sections(all_keys),
        *_placeholders(),
    )
    return "".join(parts)


def _overview(all_keys: Sequence[Key]) -> Iterator[str]:
    yield "| key | | |\n|---|---|---|\n"
    for key in all_keys:
        if len(key.path) == 1:
            need = "required" if key.required else ""
            yield f"| [`{key.dotted}`](#{key.anchor}) | {need} | {prose(key.schema['description'])} |\n"


def _sections(all_keys: Sequence[Key]) -> Iterator[str]:
    """Yield a table for each top-level mapping and each target; all other top-level keys share the first table."""
    mappings = {key.path[0] for key in all_keys if len(key.path) > 1}

    def section(key: Key) -> str:
        if key.path[0] == _OF_TARGETS:
            return ".".join(key.path[:2])
        return key.path[0] if key.path[0] in mappings else _TOP

    for title, group in groupby(all_keys, section):
        yield f"## {title if title == _TOP else f'`{title}`'}\n\n{_TABLE}"
        yield from (_row(key, has_heading=key.dotted == title) for key in group)
        yield "\n"


def _row(key: Key, *, has_heading: bool) -> str:
    """Return a key's row, with the anchor that a heading would have."""
    anchor = "" if has_heading else f'<a id="{key.anchor}"></a>'
    entry = f"{prose(key.schema['description'])} {' '.join(_facts(key))} Example: `{example(key)}`"
    return f"| {anchor}`{key.dotted}` | {entry.replace('|', chr(92) + '|')} |\n"


def _facts(key: Key) -> Iterator[str]:
    """Yield the type with its requirements, and the default, as sentences."""
    requirements = [
        type_of(key.schema),
        *(["required"] if key.required else []),
        *form_of(key.schema),
    ]
    yield f"*{prose('; '.join(requirements))}.*"
    if "default" in key.schema:
        yield f"Default: `{_text(key.schema['default'])}`."


def example(key: Key) -> str:
    """Return the key with the schema's first example, in one line of YAML."""
    return f"{key.instances[-1]}: {_text(key.schema['examples'][0])}"


def _text(value: object) -> str:
    """Return the value on one line, as YAML."""
    return str(
        yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=1000)
    ).partition("\n")[0]


def _placeholders() -> Iterator[str]:
    yield _PLACEHOLDERS
    yield from (f"| `${{{name}}}` | {meaning} |\n" for name, meaning in PLACEHOLDERS.items())
