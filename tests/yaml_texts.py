"""Texts that the reader accepts, texts that it refuses, and random data for other YAML writers."""

from typing import Any, Final

from hypothesis import strategies as st

_CHARACTERS: Final = st.characters(exclude_categories=["C", "Zl", "Zp"]) | st.sampled_from(
    "\t\n\"'\\😀"
)
TEXTS: Final = st.text(_CHARACTERS, max_size=12)
DATA: Final = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(TEXTS, below, max_size=4),
    max_leaves=15,
)
MAPPINGS: Final = st.dictionaries(TEXTS, DATA, min_size=1, max_size=4)

CONSTRUCTS: Final[dict[str, Any]] = {
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
    '{"a":1,"b":[true,false,null],"c":{"d":"\\u00e9\\/"}}': {
        "a": 1,
        "b": [True, False, None],
        "c": {"d": "é/"},
    },
    '\t{\n\t"a":\t[1,\t2],\t"b":\t"x\\ty"\t}\t\n\t\n': {"a": [1, 2], "b": "x\ty"},
    '{"a": "\\ud83d\\ude00", "\\uD83D\\uDE00": "\\\\ud83d"}': {"a": "😀", "😀": "\\ud83d"},
    "{a: \"x\ty\", b: 'x'}": {"a": "x\ty", "b": "x"},
}
"""Every construct of YAML that a spec may use, with its data."""

REFUSED: Final = {
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
"""Refused texts, each with the id, line and column of its finding."""
