"""Specs that nobody wrote: the corpus, the examples and the example project, broken at random places.

Whatever the text, the answer is findings with an id and a place, in less than two seconds, and never a traceback. The
seed is fixed, so that a failure can be repeated; `TPUCFG_FUZZ=20000` takes more of them.
"""

import json
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from badspecs import BAD, CATALOG, SPECS
from tpucfg.config.check import document_findings
from tpucfg.config.compile import Compiled, compile_project, render_all
from tpucfg.findings import RULES, Finding, errors
from tpucfg.spec.document import Document
from tpucfg.spec.load import examine
from tpucfg.spec.reader import read_bytes
from tpucfg.targets import TARGETS

ROOT: Final = Path(__file__).parent.parent
COUNT: Final = int(os.environ.get("TPUCFG_FUZZ", "1500"))
BATCHES: Final = 15
SLOWEST_SECONDS: Final = 2
FILES: Final = sorted(
    [
        ROOT / "tpucfg.yaml",
        *ROOT.glob("examples/**/tpucfg.yaml"),
        *(path for name in SPECS for path in BAD.glob(f"*/{name}")),
        *(path for path in BAD.glob("*/fixed.yaml") if not list(path.parent.glob("config.*"))),
    ]
)
CONTENTS: Final = [path.read_bytes() for path in FILES if path.is_file()]
CONFIGS: Final = [(path.read_bytes(), path.name.split(".")[1]) for path in sorted(BAD.glob("*/config.*.yaml"))]

NOTHING: Final[tuple[Any, ...]] = (None, "", " ", [], {}, [[]], [None], {"": None}, {"a": {}}, {"v2-8": {}})
NUMBERS: Final = (True, False, 0, -1, 1, 8, 10**15, 10**30, 0.5, -0.0, 1e-300, 1e300)
TEXTS: Final = ("0", "x", "a" * 300, "a b", "a\nb", "null", "1e-3", "é", "😀", "\u202e", "../../x", "-rf", "$(id)")
MEANT: Final = (
    "v2-8",
    "v3-32",
    "us-central1",
    "europe-west4-a",
    "${bucket}",
    "${",
    "$${",
    "{{ 7*7 }}",
    "gs://",
    "gs:///",
)
OTHERS: Final = (["v2-8"], ["v2-8", "v2-8"], {"train_steps": 1}, {"batch_size": 1})
VALUES: Final[tuple[Any, ...]] = (*NOTHING, *NUMBERS, *TEXTS, *MEANT, *OTHERS)
SIGNS: Final = (
    "\t",
    "\r",
    "\n",
    ":",
    ": ",
    "- ",
    "{",
    "[",
    "]",
    "}",
    "&a ",
    "*a",
    "!x ",
    "'",
    '"',
    "|",
    ">",
    "#",
    "%",
    "@",
)
WORDS: Final = ("? ", "<<: ", "---\n", "\0", "\ufeff", "\u2028", "\\", "${", "0x", ".inf", "1e999")
BYTES: Final = (*(text.encode() for text in (*SIGNS, *WORDS)), b"\xff", b"\xed\xa0\x80")


def cut(rng: random.Random, content: bytes) -> bytes:
    """Without some bytes, up to a whole tail."""
    start = rng.randrange(len(content) + 1)
    return content[:start] + content[start + rng.choice([1, 2, 10, 100, len(content)]) :]


def put_in(rng: random.Random, content: bytes) -> bytes:
    """With bytes that mean something to a reader of YAML, or nothing to any."""
    at = rng.randrange(len(content) + 1)
    return content[:at] + rng.choice(BYTES) * rng.choice([1, 1, 1, 3, 50]) + content[at:]


def change(rng: random.Random, content: bytes) -> bytes:
    """With one byte for another."""
    at = rng.randrange(len(content) + 1)
    return content[:at] + bytes([rng.randrange(256)]) + content[at + 1 :]


def move_lines(rng: random.Random, content: bytes) -> bytes:
    """With a line twice, at another place, at another indent, or gone."""
    lines = content.splitlines(keepends=True) or [b""]
    at, to = rng.randrange(len(lines)), rng.randrange(len(lines) + 1)
    line = lines[at]
    moved = rng.choice([line, b" " * rng.randrange(6) + line.lstrip(), line.lstrip(b" -")])
    if rng.random() < 0.5:
        del lines[at]
    lines.insert(to, rng.choice([moved, b""]))
    return b"".join(lines)


def change_data(rng: random.Random, content: bytes) -> bytes:
    """With a node deleted, doubled, or replaced, written anew as YAML or JSON."""
    document = read_bytes(content, "x")
    if not isinstance(document.data, dict) or not document.data:
        return content
    data = json.loads(json.dumps(document.data))
    for _ in range(rng.choice([1, 1, 2, 5])):
        holders = list(_holders(data))
        holder, key = rng.choice(holders)
        kind = rng.randrange(4)
        if kind == 0:
            del holder[key]
        elif kind == 1 and isinstance(holder, list):
            holder.insert(rng.randrange(len(holder) + 1), holder[key])
        elif kind == 2 and isinstance(holder, dict):
            name = rng.choice(["x", "", "size", "<<", "a b", "é", key.upper(), key[:-1], key * 3])
            holder[name] = json.loads(json.dumps(holder[key]))
        else:
            holder[key] = json.loads(json.dumps(rng.choice([*VALUES, *(value[place] for value, place in holders)])))
        if not data:
            break
    if rng.random() < 0.5:
        return json.dumps(data, indent=rng.choice([None, 1])).encode()
    text: str = yaml.safe_dump(
        data, allow_unicode=True, sort_keys=False, default_flow_style=rng.choice([None, True, False])
    )
    return text.encode()


def _holders(data: Any) -> Iterator[tuple[Any, Any]]:
    """Every list and mapping with each of its keys."""
    for key, value in list(data.items() if isinstance(data, dict) else enumerate(data)):
        yield data, key
        if isinstance(value, dict | list):
            yield from _holders(value)


CHANGES: Final[tuple[Callable[[random.Random, bytes], bytes], ...]] = (
    cut,
    put_in,
    change,
    move_lines,
    change_data,
    change_data,
    change_data,
    change_data,
)


def judged(found: tuple[Finding, ...], document: Document) -> None:
    """Every finding is one that there is, at a place that there is, in one line of text."""
    rows = document.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for finding in found:
        assert finding.id in RULES
        for text in (finding.message, finding.help, *finding.details):
            assert text.isprintable()
        for place in (finding.place, *(place for place, _ in finding.related)):
            assert place.file == document.file
            assert 1 <= place.line <= max(len(rows), 1)
            assert 1 <= place.column <= len(rows[place.line - 1]) + 1
            assert (place.line, place.column) <= (place.end_line, place.end_column)
    assert len(set(found)) == len(found)


def check(content: bytes) -> tuple[Compiled | None, Document, tuple[Finding, ...]]:
    """What `tpucfg check` does with a text."""
    document = read_bytes(content, "tpucfg.yaml")
    project, found = examine(document)
    if project is None:
        assert errors(found)
        return None, document, found
    compiled = compile_project(project, CATALOG, beside=found)
    assert not project.broken or errors(compiled.findings)
    return compiled, document, compiled.findings


@pytest.mark.parametrize("batch", range(BATCHES))
def test_no_spec_ends_in_a_traceback(batch: int) -> None:
    """Broken once or several times, each is answered; what has no error left is rendered, and each config read back."""
    rng = random.Random(f"specs {batch}")  # noqa: S311 - nothing here is a secret
    for _ in range(COUNT // BATCHES):
        content = rng.choice(CONTENTS)
        for _ in range(rng.choice([1, 1, 2, 4])):
            content = rng.choice(CHANGES)(rng, content)
        start = time.process_time()
        compiled, document, found = check(content)
        judged(found, document)
        if compiled and not errors(found):
            assert len(list(render_all(compiled))) == len(compiled.messages)
        assert time.process_time() - start < SLOWEST_SECONDS


@pytest.mark.parametrize("batch", range(3))
def test_no_config_ends_in_a_traceback(batch: int) -> None:
    """The same for a config.yaml that somebody else wrote, for every target, whichever it was written for."""
    rng = random.Random(f"configs {batch}")  # noqa: S311 - likewise
    for _ in range(COUNT // BATCHES):
        content, target = rng.choice(CONFIGS)
        target = rng.choice([target, target, rng.choice(list(TARGETS))])
        for _ in range(rng.choice([1, 1, 2, 4])):
            content = rng.choice(CHANGES)(rng, content)
        document = read_bytes(content, "config.yaml")
        start = time.process_time()
        judged(document_findings(document, target, CATALOG), document)
        assert time.process_time() - start < SLOWEST_SECONDS
