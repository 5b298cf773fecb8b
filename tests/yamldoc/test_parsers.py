"""Both parsers, libyaml's and PyYAML's own, make the same documents."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reading import below, canonical
from spec_factory import ROOT
from tpucfg.yamldoc import parser as events
from tpucfg.yamldoc.document import Document
from tpucfg.yamldoc.reader import read_text
from yaml_texts import CONSTRUCTS, MAPPINGS, REFUSED

CORPUS = [
    *CONSTRUCTS,
    *REFUSED,
    *(
        path.read_text()
        for folder in ("examples", "tests/official/samples")
        for path in ROOT.glob(f"{folder}/**/*.yaml")
    ),
    (ROOT / "tpucfg.yaml").read_text(),
    "a: &x\nb: *x\n",
    "a: # c\n\n  b: 1\n\n\nc: 2\n",
    "- - - a\n    - b\n  - c\n- d\n",
    "? |\n  long key\n: 1\n",
    "a: >-\n\n  x\n\n   y\n  z\n\n\nb: 1\n",
    "a: '\n  x\n\n  y\n  '\n",
    "a: x\n b\n\n c\nd: 1\n",
    "{a: [b, {c: d}], ? e : f, g: }\n",
    "a: \xa0b\nc: \ue000\U0010ffff\n",
]


@pytest.mark.parametrize("text", CORPUS, ids=repr)
def test_both_parsers_make_the_same_document(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyYAML's own parser stands in for libyaml's: the same data, the same places, the same ids at the same lines."""
    by_libyaml = seen(read_text(text, "a.yaml"))
    monkeypatch.setattr(yaml, "__with_libyaml__", False)
    monkeypatch.setattr(events, "_Parser", events._event_parser())  # noqa: SLF001 - chosen once, when the module is imported
    assert seen(read_text(text, "a.yaml")) == by_libyaml


@given(st.one_of(MAPPINGS.map(json.dumps), MAPPINGS.map(lambda data: str(yaml.safe_dump(data, allow_unicode=True)))))
def test_both_parsers_read_what_others_write(text: str) -> None:
    """The same for whatever JSON's and YAML's writers put out."""
    with pytest.MonkeyPatch.context() as patch:
        by_libyaml = seen(read_text(text, "a.yaml"))
        patch.setattr(yaml, "__with_libyaml__", False)
        patch.setattr(events, "_Parser", events._event_parser())  # noqa: SLF001 - likewise
        assert seen(read_text(text, "a.yaml")) == by_libyaml


def seen(document: Document) -> tuple[object, ...]:
    """All of a document but the words of a parser's complaint, the ends of blocks, and where nothing stands at all."""
    found = [(finding.id, finding.location) for finding in document.findings]
    nodes = below((), document.root) if document.root else ()
    values = {path: (node.start.line, node.start.column) for path, node in nodes if node.value is not None or node.text}
    return canonical(document.data), values, {path: document.key(path) for path in values}, found
