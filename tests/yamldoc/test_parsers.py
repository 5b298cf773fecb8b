"""libyaml's parser and PyYAML's own produce equal documents."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from reading import below, canonical
from spec_factory import ROOT
from tpucfg.yamldoc import parser as parser_module
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


def test_both_parsers_produce_the_same_document(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyYAML's own parser gives the data, the locations and the finding ids of libyaml's."""
    by_libyaml = [comparable(read_text(text, "a.yaml")) for text in CORPUS]
    use_pure_parser(monkeypatch)
    for text, expected in zip(CORPUS, by_libyaml, strict=True):
        assert comparable(read_text(text, "a.yaml")) == expected, text


@given(
    st.one_of(
        MAPPINGS.map(json.dumps),
        MAPPINGS.map(lambda data: str(yaml.safe_dump(data, allow_unicode=True))),
    )
)
def test_both_parsers_agree_on_texts_of_other_writers(text: str) -> None:
    """Texts of JSON's and PyYAML's writers give equal documents with both parsers."""
    with pytest.MonkeyPatch.context() as patch:
        by_libyaml = comparable(read_text(text, "a.yaml"))
        use_pure_parser(patch)
        assert comparable(read_text(text, "a.yaml")) == by_libyaml


def use_pure_parser(patch: pytest.MonkeyPatch) -> None:
    """Make the reader use PyYAML's own parser."""
    patch.setattr(parser_module, "_Parser", yaml.SafeLoader)


def comparable(document: Document) -> tuple[object, ...]:
    """Return everything in a document but syntax messages, the ends of blocks, and the locations of absent values."""
    findings = [(finding.id, finding.location) for finding in document.findings]
    nodes = below((), document.root) if document.root else ()
    values = {
        path: (node.start.line, node.start.column)
        for path, node in nodes
        if node.value is not None or node.text
    }
    return (
        canonical(document.data),
        values,
        {path: document.key_location(path) for path in values},
        findings,
    )
