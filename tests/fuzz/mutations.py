"""Mutations of a text: bytes, lines or nodes are removed, duplicated, moved or replaced."""

import json
import random
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from typing import Any, Final

import yaml

from tpucfg.yamldoc.reader import read_bytes

NOTHING: Final[tuple[Any, ...]] = (
    None,
    "",
    " ",
    [],
    {},
    [[]],
    [None],
    {"": None},
    {"a": {}},
    {"v2-8": {}},
)
NUMBERS: Final = (True, False, 0, -1, 1, 8, 10**15, 2**63, 2**64, 10**30, 0.5, -0.0, 1e-300, 1e300)
HOSTILE: Final = (
    *(
        "../../x",
        "/etc/passwd",
        "-rf",
        "--",
        "con",
        "nul",
        ".",
        "..",
        "~",
        "$(id)",
        "`id`",
        "${IFS}",
        "{{7*7}}",
        "{% x %}",
    ),
    *(
        "!!python/object:os.system",
        "%s%n",
        "\x1b[2J",
        "a\0b",
        "\u202e",
        "\u2028",
        "\ud800",
        "é",
        "😀",
        "²",
        "١",
        "a\nb",
    ),
    *(
        "'",
        '"',
        "; id",
        "| id",
        "> x",
        "&& id",
        "<script>",
        "::error::x",
        "-----",
        "|",
        "a|b",
        "@x",
        "%0A",
        "#",
    ),
)
"""Names with a special meaning for a shell, a template, a terminal, a file system or Markdown."""
TEXTS: Final = (
    "0",
    "x",
    "a" * 300,
    "a" * 5000,
    "a b",
    "null",
    "1e-3",
    "NaN",
    "true",
    "2026-01-01",
    "12:30",
    *HOSTILE,
)
PLAUSIBLE: Final = (
    *(
        "v2-8",
        "v3-32",
        "us-central1",
        "europe-west4-a",
        "${bucket}",
        "${",
        "$${",
        "gs://",
        "gs:///",
        "gs://b/../x",
    ),
    *("9" * 5000, "v2-" + "9" * 5000, "9" * 400 + "s", "-1", "0x10"),
    *(
        "vertex-ai",
        "cloud-tpu",
        "compute-engine",
        "gke",
        "ai-platform",
        "allUsers",
        "a@b.iam.gserviceaccount.com",
        "1",
        "TPU021",
    ),
)
OTHERS: Final[tuple[Any, ...]] = (
    ["v2-8"],
    ["v2-8", "v2-8"],
    {"train_steps": 1},
    {"batch_size": 1},
    [[[[[]]]]],
    {"a": {"b": {"c": {}}}},
)
VALUES: Final[tuple[Any, ...]] = (*NOTHING, *NUMBERS, *TEXTS, *PLAUSIBLE, *OTHERS)
KEYS: Final = (
    "x",
    "",
    "size",
    "<<",
    "a b",
    "é",
    "v2-8",
    "extra",
    "TPU021",
    "__proto__",
    "=",
    *HOSTILE,
)
SIGNS: Final = (
    *"\t\r\n:{[]}'\"|>#%@,-&*!",
    ": ",
    "- ",
    "? ",
    "&a ",
    "*a",
    "!x ",
    "!!python/object:x ",
    "<<: ",
)
WORDS: Final = (
    *(
        "---\n",
        "...\n",
        "\0",
        "\ufeff",
        "\u2028",
        "\x85",
        "\x1b[2J",
        "\\",
        "\\ud800",
        "${",
        "0x",
        ".inf",
        "1e999",
    ),
    *(
        "9" * 30,
        "9" * 300,
        "&a [*a, *a]",
        "[" * 60,
        "{a: " * 60,
        "- " * 60,
        "\n" + " " * 300,
        '"\\x00"',
        "//",
        "/*",
    ),
)
BYTES: Final = (
    *(text.encode() for text in (*SIGNS, *WORDS)),
    b"\xff",
    b"\xed\xa0\x80",
    b"\xff\xfe",
    b"\xc0\x80",
    BOM_UTF8,
)

MAX_BYTES: Final = 2 << 20
"""Twice the size limit of a spec. Larger texts are rejected too, and only take the fuzzer's memory."""

Change = Callable[[random.Random, bytes], bytes]


def cut(rng: random.Random, content: bytes) -> bytes:
    """Remove some bytes, up to the whole tail."""
    start = rng.randrange(len(content) + 1)
    return content[:start] + content[start + rng.choice([1, 2, 10, 100, len(content)]) :]


def insert(rng: random.Random, content: bytes) -> bytes:
    """Insert bytes that are special or invalid in YAML."""
    position = rng.randrange(len(content) + 1)
    put: bytes = rng.choice(BYTES) * rng.choice([1, 1, 1, 3, 50])
    return content[:position] + put + content[position:]


def change(rng: random.Random, content: bytes) -> bytes:
    """Replace one byte."""
    position = rng.randrange(len(content) + 1)
    return content[:position] + bytes([rng.randrange(256)]) + content[position + 1 :]


def repeat(rng: random.Random, content: bytes) -> bytes:
    """Repeat a piece many times, so that a line, a list or the nesting grows long."""
    start = rng.randrange(len(content) + 1)
    end = start + rng.choice([1, 5, 40])
    piece: bytes = rng.choice([content[start:end], rng.choice(BYTES)])
    return content[:end] + piece * rng.choice([2, 50, 2000, 2000, 20_000]) + content[end:]


def encode(rng: random.Random, content: bytes) -> bytes:
    """Encode the text differently."""
    text = content.decode("utf-8", "replace")
    encodings = (
        text.replace("\n", "\r\n").encode(),
        text.replace("\n", "\r").encode(),
        BOM_UTF8 + content,
        text.encode("utf-16"),
        text.encode("utf-32"),
        text.encode("latin-1", "replace"),
        text.replace("  ", "\t").encode(),
    )
    return rng.choice(encodings)


def move_lines(rng: random.Random, content: bytes) -> bytes:
    """Duplicate, move, indent or remove a line."""
    lines = content.splitlines(keepends=True) or [b""]
    source, destination = rng.randrange(len(lines)), rng.randrange(len(lines) + 1)
    line = lines[source]
    moved = rng.choice([line, b" " * rng.randrange(6) + line.lstrip(), line.lstrip(b" -")])
    if rng.random() < 0.5:
        del lines[source]
    lines.insert(destination, rng.choice([moved, b""]))
    return b"".join(lines)


def change_data(rng: random.Random, content: bytes) -> bytes:
    """Delete, duplicate or replace nodes, and serialize the data as YAML or JSON."""
    data = read_bytes(content, "x").data
    if not isinstance(data, dict | list) or not data:
        return content
    data = _copy(data)
    for _ in range(rng.choice([1, 1, 2, 5])):
        _change_node(rng, data)
        if not data:
            break
    return serialize(rng, data)


def _change_node(rng: random.Random, data: Any) -> None:
    containers = list(_containers(data))
    container, key = rng.choice(containers)
    kind = rng.randrange(5)
    if kind == 0:
        del container[key]
    elif kind == 1 and isinstance(container, list):
        container.insert(rng.randrange(len(container) + 1), _copy(container[key]))
    elif kind == 2 and isinstance(container, dict):
        name = rng.choice([*KEYS, key.upper(), key[:-1], key * 3])
        container[name] = _copy(container[key])
    elif kind == 3 and isinstance(container[key], str):
        position = rng.randrange(len(container[key]) + 1)
        container[key] = container[key][:position] + rng.choice(HOSTILE) + container[key][position:]
    else:
        container[key] = _copy(
            rng.choice([*VALUES, *(value[location] for value, location in containers)])
        )


def serialize(rng: random.Random, data: Any) -> bytes:
    """Serialize the data in one of the styles of YAML or JSON."""
    if rng.random() < 0.5:
        return json.dumps(
            data, indent=rng.choice([None, 1]), ensure_ascii=rng.random() < 0.5
        ).encode("utf-8", "replace")
    style = rng.choice([None, True, False])
    text: str = yaml.safe_dump(data, allow_unicode=True, sort_keys=False, default_flow_style=style)
    return text.encode("utf-8", "replace")


def _copy(data: Any) -> Any:
    """Return a deep copy: PyYAML writes an object that occurs twice as an alias."""
    return json.loads(json.dumps(data))


def _containers(data: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every list and mapping with each of its keys."""
    for key, value in list(data.items() if isinstance(data, dict) else enumerate(data)):
        yield data, key
        if isinstance(value, dict | list):
            yield from _containers(value)


CHANGES: Final[tuple[Change, ...]] = (
    cut,
    insert,
    change,
    repeat,
    encode,
    move_lines,
    *[change_data] * 5,
)


def mutate(rng: random.Random, content: bytes) -> bytes:
    """Return the text after one or several mutations."""
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        content = rng.choice(CHANGES)(rng, content)[:MAX_BYTES]
    return content


def mutate_lines(rng: random.Random, content: bytes) -> bytes:
    """Return JSON lines with one line mutated, duplicated, truncated or removed."""
    lines = content.splitlines(keepends=True)
    if not lines or rng.random() < 0.3:
        return mutate(rng, content)
    index = rng.randrange(len(lines))
    line = lines[index]
    lines[index] = rng.choice([mutate(rng, line).rstrip(b"\n") + b"\n", line * 2, line[:-5]])
    return b"".join(lines)


def shuffle_keys(rng: random.Random, data: Any, ordered: tuple[str, ...] = ()) -> Any:
    """Return the data with shuffled keys, except in mappings below the `ordered` keys."""
    if isinstance(data, list):
        return [shuffle_keys(rng, item, ordered) for item in data]
    if not isinstance(data, dict):
        return data
    keys = list(data)
    rng.shuffle(keys)
    return {
        key: data[key] if key in ordered else shuffle_keys(rng, data[key], ordered) for key in keys
    }


def add_comments(rng: random.Random, content: bytes) -> bytes:
    """Return the YAML with comments, empty lines and trailing blanks; no value may span several lines."""
    lines = []
    for line in content.decode().splitlines():
        lines += [rng.choice(["", "  ", "# a comment: {x", "        # é"])] * rng.choice(
            [0, 0, 1, 3]
        )
        lines.append(line + rng.choice(["", "", "   ", "  # note: [here"]))
    return rng.choice(["\n", "\r\n"]).join([*lines, ""]).encode()
