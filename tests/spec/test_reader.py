"""Text to document: what is read, where it stands, and what is refused."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from making import ROOT, ids, the
from reading import canonical
from tpucfg.spec import events
from tpucfg.spec.document import Document, Node
from tpucfg.spec.document import Path as Steps
from tpucfg.spec.nodes import DEEPEST, MOST_VALUES
from tpucfg.spec.reader import LARGEST_FILE, read_bytes, read_file, read_text

TEXTS = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]) | st.sampled_from("\t\n\"'\\😀"), max_size=12)
DATA = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(TEXTS, below, max_size=4),
    max_leaves=15,
)
MAPPINGS = st.dictionaries(TEXTS, DATA, min_size=1, max_size=4)

CONSTRUCTS: dict[str, Any] = {
    "a: 1\nb: x y\n": {"a": 1, "b": "x y"},
    "a:\n  b:\n    c: 1\n": {"a": {"b": {"c": 1}}},
    "a:\n- 1\n- - 2\n  - 3\n": {"a": [1, [2, 3]]},
    "- a: 1\n  b: 2\n-  c: 3\n": [{"a": 1, "b": 2}, {"c": 3}],
    "a: {b: 1, c: [x, 'y z', {d: e}]}\n": {"a": {"b": 1, "c": ["x", "y z", {"d": "e"}]}},
    "[a: 1, b]\n": [{"a": 1}, "b"],
    "a: {b, c: 1,}\n": {"a": {"b": None, "c": 1}},
    "a:\nb: ~\nc: ''\n": {"a": None, "b": None, "c": ""},
    "? a\n: b\n? c\n": {"a": "b", "c": None},
    "a: 'it''s # no comment'\n": {"a": "it's # no comment"},
    'a: "\\t\\u263a\\x41\\U0001F600\\/\\"\\\\"\n': {"a": '\t☺A😀/"\\'},
    'a: "one\n  two\n\n  three \\\n  four"\n': {"a": "one two\nthree four"},
    "a: one\n  two\n": {"a": "one two"},
    "a: |\n  x\n   y\n\nb: |-\n  x\nc: |+\n  x\n\nd: >\n  x\n  y\n\n  z\n": {
        "a": "x\n y\n",
        "b": "x",
        "c": "x\n\n",
        "d": "x y\nz\n",
    },
    "a: |2\n    x\n   y\n": {"a": "  x\n y\n"},
    "a: &x {b: 1}\nc: *x\nd: [*x, *x]\n": {"a": {"b": 1}, "c": {"b": 1}, "d": [{"b": 1}, {"b": 1}]},
    "a: &x 1\nb: &x 2\nc: *x\n": {"a": 1, "b": 2, "c": 2},
    "# one\na: 1 # two\n# three\n": {"a": 1},
    "a: x#y\nb: 'c'\n": {"a": "x#y", "b": "c"},
    "%YAML 1.2\n---\na: 1\n...\n": {"a": 1},
    "%YAML 1.1\n---\na: no\n": {"a": "no"},
    "--- a\n": "a",
    "a: b:c\nd: http://x/y:1\n": {"a": "b:c", "d": "http://x/y:1"},
    "'<<': {a: 1}\n": {"<<": {"a": 1}},
    "1: a\ntrue: b\nnull: c\n1.5: d\n": {"1": "a", "true": "b", "null": "c", "1.5": "d"},
    "a:\r\n  b: 1\r\nc: 2\r\n": {"a": {"b": 1}, "c": 2},
    "é: 日本\n😀: {ß: 1}\n": {"é": "日本", "😀": {"ß": 1}},
    "a: [\n  1,\n  2\n]\n": {"a": [1, 2]},
    "{}": {},
    '{"a":1,"b":[true,false,null],"c":{"d":"\\u00e9\\/"}}': {"a": 1, "b": [True, False, None], "c": {"d": "é/"}},
    '\t{\n\t"a":\t[1,\t2],\t"b":\t"x\\ty"\t}\t\n\t\n': {"a": [1, 2], "b": "x\ty"},
    '{"a": "\\ud83d\\ude00", "\\uD83D\\uDE00": "\\\\ud83d"}': {"a": "😀", "😀": "\\ud83d"},
    "{a: \"x\ty\", b: 'x'}": {"a": "x\ty", "b": "x"},
}
"""Every construct of YAML that a spec may use, with what it says."""


@pytest.fixture(params=["libyaml", "PyYAML"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Either parser: libyaml's, and the one in Python that stands in where PyYAML was built without it."""
    if request.param == "PyYAML":
        monkeypatch.setattr(yaml, "__with_libyaml__", False)
        monkeypatch.setattr(events, "_Parser", events._parser())  # noqa: SLF001 - chosen once, when the module is imported
    return str(request.param)


@pytest.mark.parametrize(("text", "data"), CONSTRUCTS.items(), ids=map(repr, CONSTRUCTS))
@pytest.mark.usefixtures("parser")
def test_constructs(text: str, data: object) -> None:
    """Block and flow style, all five ways to write a scalar, aliases, JSON: each is read as YAML 1.2 means it."""
    document = read_text(text, "a.yaml")
    assert document.findings == ()
    assert canonical(document.data) == canonical(data)


def below(path: Steps, node: Node | None) -> Iterator[tuple[Steps, Node]]:
    """The node and all nodes below it, with their paths."""
    assert node is not None
    yield path, node
    children: Any = node.children
    for step, child in children.items() if isinstance(children, dict) else enumerate(children):
        yield from below((*path, step), child)


def test_the_place_of_every_key_and_value() -> None:
    """Lines and columns count from 1, in characters and not in bytes; the end is exclusive."""
    document = read_text("é: &x 日本 # c\nb: {c: 😀, d: [1, 'x']}\ne:\n  - |\n    z\n  - *x\n", "a.yaml")
    expected = {
        (("é",), "key"): (1, 1, 1, 2),
        (("é",), "value"): (1, 4, 1, 9),
        (("b",), "key"): (2, 1, 2, 2),
        (("b",), "value"): (2, 4, 2, 23),
        (("b", "c"), "key"): (2, 5, 2, 6),
        (("b", "c"), "value"): (2, 8, 2, 9),
        (("b", "d"), "key"): (2, 11, 2, 12),
        (("b", "d"), "value"): (2, 14, 2, 22),
        (("b", "d", 0), "value"): (2, 15, 2, 16),
        (("b", "d", 1), "value"): (2, 18, 2, 21),
        (("e",), "key"): (3, 1, 3, 2),
        (("e", 0), "value"): (4, 5, 6, 1),
        (("e", 1), "value"): (6, 5, 6, 7),
    }
    found = {(path, kind): tuple(getattr(document, kind)(path)[1:]) for path, kind in expected}
    assert found == expected


def test_the_place_to_show() -> None:
    """A value that is missing or spreads over lines is shown at its key, an entry of a list at itself."""
    document = read_text("a:\n  b:\n    c: 1\n  d: [x, y]\n", "a.yaml")
    shown = {
        ("a", "b", "c"): (3, 8),
        ("a", "b"): (2, 3),
        ("a", "missing"): (1, 1),
        ("a", "b", "missing", "deeper"): (2, 3),
        ("a", "d", 1): (4, 10),
        ("a", "d", 7): (4, 3),
        (): (1, 1),
    }
    assert {path: tuple(document.value(path)[1:3]) for path in shown} == shown
    assert tuple(document.key(("a", "d", 1))[1:3]) == (4, 10)


@given(MAPPINGS, st.sampled_from([None, 1, "\t"]))
@example({"a": {"b😀": "😀", "c": [1]}, "d": 2}, None)
def test_places_in_json(data: dict[str, Any], indent: Any) -> None:
    """What stands at the place of a value is that value; only a text with surrogate escapes ends a little early."""
    text = json.dumps(data, indent=indent, ensure_ascii=False)
    document = read_text(text, "a.json")
    assert canonical(document.data) == canonical(data)
    for _, node in below((), document.root):
        assert canonical(json.loads(cut(text, node))) == canonical(node.value)
        for key, at in node.keys.items():
            assert json.loads(cut(text, at)) == key


@given(MAPPINGS)
@example({"a😀": "😀😀", "b": ["😀", 1], "c": 2})
def test_places_in_json_with_escapes(data: dict[str, Any]) -> None:
    """In one long line of ASCII, too, every value and every key begins where its place says."""
    text = json.dumps(data)
    document = read_text(text, "a.json")
    assert canonical(document.data) == canonical(data)
    decoder = json.JSONDecoder()
    for _, node in below((), document.root):
        assert canonical(decoder.raw_decode(text, node.start.column)[0]) == canonical(node.value)
        for key, at in node.keys.items():
            assert decoder.raw_decode(text, at.start.column)[0] == key


def cut(text: str, node: Node) -> str:
    """What stands between the two marks of a node."""
    lines = text.split("\n")[node.start.line : node.end.line + 1]
    lines[-1] = lines[-1][: node.end.column]
    lines[0] = lines[0][node.start.column :]
    return "\n".join(lines)


@given(MAPPINGS, st.sampled_from([None, True, False]), st.sampled_from([20, 1000]))
def test_yaml_of_another_writer(data: dict[str, Any], flow: bool | None, width: int) -> None:
    """Whatever PyYAML writes, in block or flow style and with folded lines, is read as what it wrote.

    PyYAML writes for YAML 1.1, where `0E0` is text: here every text begins with a letter.
    """
    data = lettered(data)
    text = yaml.safe_dump(data, default_flow_style=flow, width=width, allow_unicode=True, sort_keys=False)
    assert canonical(read_text(text, "a.yaml").data) == canonical(data)


def lettered(data: Any) -> Any:
    """The data with a letter before each text and each key."""
    if isinstance(data, dict):
        return {f"x{key}": lettered(item) for key, item in data.items()}
    if isinstance(data, list):
        return [lettered(item) for item in data]
    return f"x{data}" if isinstance(data, str) else data


REFUSED = {
    "a: [1\n": ("TPU002", 1, 6),
    "a: 'x\n": ("TPU002", 1, 4),
    "a: b: c\n": ("TPU002", 1, 4),
    "a: 1\n b: 2\n": ("TPU002", 2, 2),
    "a:\n\tb: 1\n": ("TPU002", 2, 1),
    "a: @x\n": ("TPU002", 1, 4),
    "a: {{ x }}\n": ("TPU011", 1, 5),
    "a: \x07\n": ("TPU002", 1, 4),
    "é: 日\x00\n": ("TPU002", 1, 5),
    "": ("TPU002", 1, 1),
    "# nothing\n": ("TPU002", 1, 1),
    "---\n...\n": ("TPU002", 1, 1),
    "a: 1\nb: 2\na: 3\n": ("TPU003", 3, 1),
    "a: {b: 1, 'b': 2}\n": ("TPU003", 1, 11),
    '{"a": 1, "\\u0061": 2}': ("TPU003", 1, 10),
    "a: .inf\n": ("TPU006", 1, 4),
    "a: [1e999]\n": ("TPU006", 1, 5),
    f"a: {'1' * 41}\n": ("TPU006", 1, 4),
    "a: !!str 1\n": ("TPU011", 1, 4),
    "a: !!python/object/apply:os.system [x]\n": ("TPU011", 1, 4),
    "a: ! 1\n": ("TPU011", 1, 4),
    "!!map {a: 1}\n": ("TPU011", 1, 1),
    "!!str a: 1\n": ("TPU011", 1, 1),
    "<<: {a: 1}\n": ("TPU011", 1, 1),
    "a: x\u2028y\n": ("TPU011", 1, 5),
    "é: \ufeffx\n": ("TPU011", 1, 4),
    "a: *x\n": ("TPU011", 1, 4),
    "a: &x [*x]\n": ("TPU011", 1, 8),
    "? [a]\n: b\n": ("TPU011", 1, 3),
    "{a: 1}: 2\n": ("TPU011", 1, 1),
    "x: &x a\n*x : 1\n": ("TPU011", 2, 1),
    "a: 1\n---\nb: 1\n": ("TPU011", 2, 1),
    'a: "x\\0"\n': ("TPU011", 1, 4),
    'a: "\\e[31m"\n': ("TPU011", 1, 4),
    '"\\x7f": 1\n': ("TPU011", 1, 1),
    '{"a": "\\u0080"}': ("TPU011", 1, 7),
}
"""What is refused, with its id and its place."""


@pytest.mark.parametrize(("text", "expected"), REFUSED.items(), ids=map(repr, REFUSED))
@pytest.mark.usefixtures("parser")
def test_refusals(text: str, expected: tuple[str, int, int]) -> None:
    """One mistake is one finding of level error, at the character where the mistake is."""
    (found,) = read_text(text, "a.yaml").findings
    assert (found.id, found.place.line, found.place.column) == expected
    assert found.level == "error"


@pytest.mark.parametrize(
    "text", ['{"a": "\\ud83d"}', '{"a": "\\ude00\\ud83d"}', '{"a": "\\\\ud83d\\ude00"}', 'a: "\\ud800"\n']
)
@pytest.mark.usefixtures("parser")
def test_half_a_surrogate_pair_is_refused(text: str) -> None:
    """Half a character is none: neither parser lets one reach the data."""
    (found,) = read_text(text, "a.yaml").findings
    assert found.id in ("TPU002", "TPU011")
    assert found.place.line == 1


def test_both_places_of_a_duplicate_key() -> None:
    """The finding stands at the second key and names the first; the first one's value counts."""
    document = read_text("a: 1\nb: 2\na: 3\na: 4\n", "a.yaml")
    assert [(found.place.line, found.related[0][0].line) for found in document.findings] == [(3, 1), (4, 1)]
    assert document.data == {"a": 1, "b": 2}


def test_all_mistakes_that_do_not_end_the_text_are_found_at_once() -> None:
    """Reading goes on behind a duplicate key, a tag, an infinite number or a control character."""
    document = read_text('a: !x 1\nb: .nan\na: 2\nc: "\\0"\nd: 4\n', "a.yaml")
    assert ids(document.findings) == ["TPU011", "TPU006", "TPU003", "TPU011"]
    assert document.root is not None


def test_a_tab_is_named() -> None:
    """The most frequent mistake of all has its own line of help."""
    (found,) = read_text("a:\n\tb: 1\n", "a.yaml").findings
    assert "tab" in found.help


@pytest.mark.parametrize(("nested", "found"), [(DEEPEST, []), (DEEPEST + 1, ["TPU010"])])
@pytest.mark.parametrize("signs", ["[]", "{}"])
def test_depth_is_bounded(nested: int, found: list[str], signs: str) -> None:
    """Lists and mappings may be nested so far and no further."""
    open_, close = ("[", "]") if signs == "[]" else ("{a: ", "}")
    assert ids(read_text(open_ * nested + close * nested, "a.yaml").findings) == found


def test_depth_is_bounded_through_aliases() -> None:
    """A chain of aliases cannot nest deeper either: whoever walks the data has only so much stack."""
    links = "".join(f"a{i}: &a{i} {'[' * 30}*a{i - 1}{']' * 30}\n" for i in range(1, 60))
    (found,) = read_text(f"a0: &a0 [x]\n{links}", "a.yaml").findings
    assert found.id == "TPU010"
    assert found.place.line == 3
    assert ids(read_text(f"a: &a {'[' * 20}{']' * 20}\nb: {'[' * 19}*a{']' * 19}\n", "a.yaml").findings) == []
    assert ids(read_text(f"a: &a {'[' * 20}{']' * 20}\nb: {'[' * 20}*a{']' * 20}\n", "a.yaml").findings) == ["TPU010"]


def test_the_number_of_values_is_bounded() -> None:
    """So many values and no more, keys not counted."""
    assert ids(read_text(f"[{'x,' * (MOST_VALUES - 1)}]", "a.yaml").findings) == []
    assert ids(read_text(f"[{'x,' * MOST_VALUES}]", "a.yaml").findings) == ["TPU010"]


def test_aliases_count_in_full() -> None:
    """The billion laughs are not read, and the place is the alias that goes too far."""
    laughs = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{name}: &{name} [{','.join([f'*{before}'] * 10)}]\n"
        for before, name in zip("abcdefg", "bcdefgh", strict=True)
    )
    (found,) = read_text(laughs, "a.yaml").findings
    assert (found.id, found.place.line) == ("TPU010", 5)


def test_the_size_of_a_file_is_bounded(tmp_path: Path) -> None:
    """A file up to the bound is read, one byte more is not, and of a larger one no more than that is held."""
    path = tmp_path / "a.yaml"
    path.write_bytes(b"a: 1\n".ljust(LARGEST_FILE, b"#"))
    assert ids(read_file(path).findings) == []
    path.write_bytes(b"a: 1\n".ljust(LARGEST_FILE + 1, b"#"))
    assert ids(read_file(path).findings) == ["TPU010"]


@pytest.mark.parametrize(
    "unfinished",
    ['{"' + '\\"' * 200_000, '{"a": "' + "x" * 400_000, "{" + '"' * 100_001, "[" * 500_000, '{"a":' * 200_000],
)
def test_a_long_text_without_an_end_is_refused_in_no_time(unfinished: str) -> None:
    """No text of the allowed size makes the reader walk it again and again: all of these end in a moment."""
    assert read_text(unfinished, "a.json").findings


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["without mark", "with mark"])
@pytest.mark.parametrize(
    ("content", "byte", "place"),
    [
        (b"a: \xff\n", "0xff", (1, 4)),
        ("é: 日\nb: ".encode() + b"\xc3\x28\n", "0xc3", (2, 4)),
        ("a: 1\n".encode("utf-16-le") + b"\x80", "0x80", (2, 2)),
        (b"a: \xed\xa0\x80\n", "0xed", (1, 4)),
    ],
)
def test_a_file_is_utf_8(content: bytes, byte: str, place: tuple[int, int], mark: bytes) -> None:
    """Of a file in another encoding the first byte that does not fit is shown, with its place."""
    found = the("TPU001", read_bytes(mark + content, "a.yaml").findings)
    assert byte in found.message
    assert (found.place.line, found.place.column) == place


def test_a_byte_order_mark_is_no_character() -> None:
    """It is dropped, and the first key stands in column 1."""
    document = read_bytes(b"\xef\xbb\xbfa: 1\n", "a.yaml")
    assert document.data == {"a": 1}
    assert tuple(document.key(("a",))[1:3]) == (1, 1)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing file and a folder are findings that say what to do, not exceptions."""
    for path in (tmp_path / "none.yaml", tmp_path):
        found = the("TPU001", read_file(path).findings)
        assert found.place.file == str(path)
        assert "--spec" in found.help


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
    monkeypatch.setattr(events, "_Parser", events._parser())  # noqa: SLF001 - chosen once, when the module is imported
    assert seen(read_text(text, "a.yaml")) == by_libyaml


@given(st.one_of(MAPPINGS.map(json.dumps), MAPPINGS.map(lambda data: str(yaml.safe_dump(data, allow_unicode=True)))))
def test_both_parsers_read_what_others_write(text: str) -> None:
    """The same for whatever JSON's and YAML's writers put out."""
    with pytest.MonkeyPatch.context() as patch:
        by_libyaml = seen(read_text(text, "a.yaml"))
        patch.setattr(yaml, "__with_libyaml__", False)
        patch.setattr(events, "_Parser", events._parser())  # noqa: SLF001 - likewise
        assert seen(read_text(text, "a.yaml")) == by_libyaml


def seen(document: Document) -> tuple[object, ...]:
    """All of a document but the words of a parser's complaint, the ends of blocks, and where nothing stands at all."""
    found = [(finding.id, finding.place) for finding in document.findings]
    nodes = below((), document.root) if document.root else ()
    values = {path: (node.start.line, node.start.column) for path, node in nodes if node.value is not None or node.text}
    return canonical(document.data), values, {path: document.key(path) for path in values}, found


@given(st.text(st.sampled_from("ab:-[]{}&*!|>'\"%@`,?#~\\ \t\n01.\x00é😀$"), max_size=40))
def test_no_text_whatever_ends_in_an_exception(text: str) -> None:
    """Whatever is typed is a document or a finding."""
    document = read_text(text, "a.yaml")
    assert document.root is not None or document.findings
