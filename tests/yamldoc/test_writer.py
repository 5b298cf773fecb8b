"""Every YAML reader returns exactly the values that were written."""

from textwrap import dedent
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reading import READERS, by_pyyaml, by_ruamel, canonical
from tpucfg.yamldoc.writer import to_yaml, yaml_entry, yaml_scalar

REFUSED_CHARACTERS = [
    *map(chr, range(0x20)),
    *map(chr, range(0x7F, 0xA0)),
    "\ufeff",
    "\ufffe",
    "\uffff",
]
"""Characters that the project's reader refuses in a spec, so they never reach a config."""
READABLE = st.characters(
    exclude_categories=["Cs"],
    exclude_characters=[char for char in REFUSED_CHARACTERS if char not in "\t\n\x85"],
)
TRICKY = st.sampled_from(
    [
        "y",
        "n",
        "yes",
        "No",
        "ON",
        "off",
        "true",
        "FALSE",
        "null",
        "Null",
        "~",
        ".inf",
        "-.INF",
        ".nan",
        "NaN",
        "nan",
        "1e-3",
        "1E5",
        ".5",
        "5.",
        "+1",
        "0x1f",
        "0o17",
        "017",
        "0b1",
        "1_000",
        "12:30",
        "190:20:30",
        "2001-01-01",
        "2001-01-01T00:00:00Z",
        "=",
        "<<",
        "<<:",
        "-",
        "--",
        "---",
        "...",
        "?",
        ":",
        "#",
        "&",
        "*",
        "!",
        "|",
        ">",
        "%x",
        "@x",
        "`x",
        "{}",
        "[]",
        "{a:",
        "[",
        ",",
        "a:",
        "a:b",
        "a:b:",
        "a",
        "#b",
        "a#b",
        "a,b",
        "'a'",
        '"a"',
        "\\",
        "\\n",
        "a\\",
        "gs://b/c",
        "$(X)",
        "{{x}}",
        "${x}",
        "/a",
        "/a:b",
        "a::b",
        "a:/",
        "a=",
        "é",
        "日本",
        "😀",
        "\x85",
        "\u2028",
        "\u2029",
        "\xa0",
    ]
)
TEXTS = (
    st.text(READABLE, max_size=40)
    | TRICKY
    | TRICKY.map(lambda text: f" {text}")
    | TRICKY.map(lambda text: f"{text} ")
)
LINES = st.lists(st.text(" -#a:|\t", max_size=5) | TRICKY, max_size=5).map("\n".join)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS
    | LINES
)
VALUES = st.recursive(
    SCALARS,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(TEXTS, below, max_size=4),
    max_leaves=12,
)


def as_text(body: dict[str, Any]) -> str:
    """Return the text of a mapping, as a template writes it."""
    return "".join(f"{yaml_entry(key, value)}\n" for key, value in body.items())


@given(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=5))
@example({"a": {}, "b": [], "c": [[], {}, [[]], [{}], {"d": []}], "e": {"f": {}}})
@example(
    {
        "a": [
            ["x\ny\n"],
            {"b": "x\n y\n", "c": ["  x\n", "x\n\n", "\nx\n", "x\n  \n", "# x\n", "- x\n"]},
        ],
        "d": "x\n---\n",
    }
)
@example(
    {
        "a": [
            "#!/bin/bash\necho 'ü' \\\n\t--x=日本 😀\n\n  a\tb\t\n",
            "a\n\t\n \t\n\tb\n",
            "é\n",
            "\ta\n",
        ],
        "b": 1,
    }
)
@example({"a": [1e22, 1e16, 1e-5, 1e300, 5e-324, -0.0, 1.0, 0.1, 1.5e16, 10**18, True, 1]})
def test_every_reader_returns_what_was_written(body: dict[str, Any]) -> None:
    """YAML 1.1, YAML 1.2 and the project's own reader agree on every value, its type and its order."""
    text = as_text(body)
    assert {name: canonical(read(text)) for name, read in READERS.items()} == dict.fromkeys(
        READERS, canonical(body)
    )


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_no_character_is_lost(text: str) -> None:
    """Control characters in keys and values are written as escapes that YAML 1.1 and 1.2 read alike."""
    document = as_text({"a": text, f"k{text}"[:1000]: [text]})
    assert by_pyyaml(document) == by_ruamel(document) == {"a": text, f"k{text}"[:1000]: [text]}


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_a_number_to_every_version(number: float) -> None:
    """No number, however large or small, is written in a form that a version of YAML reads as text."""
    document = as_text({"a": number})
    assert (
        canonical(by_pyyaml(document)) == canonical(by_ruamel(document)) == canonical({"a": number})
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("tpu", "tpu"),
        ("gs://bucket/data", "gs://bucket/data"),
        ("us-docker.pkg.dev/p/train/mnist:1.0", "us-docker.pkg.dev/p/train/mnist:1.0"),
        ("--batch_size=4096", '"--batch_size=4096"'),
        ("2.2", '"2.2"'),
        ("no", '"no"'),
        ("Off", '"Off"'),
        ("1e-3", '"1e-3"'),
        ("12:30", '"12:30"'),
        ("", '""'),
        ("a: b", '"a: b"'),
        ("a #b", '"a #b"'),
        ("a:", '"a:"'),
        ('say "x"', '"say \\"x\\""'),
        ("a\tb", '"a\\tb"'),
        ("\x85", '"\\u0085"'),
        ("日本", '"日本"'),
        (8, "8"),
        (0.00001, "0.00001"),
        (1e22, "1.0e+22"),
        (True, "true"),
        (None, "null"),
    ],
)
def test_a_scalar_is_plain_only_if_unambiguous(value: object, text: str) -> None:
    """A string is unquoted only if no version could read it as anything else; numbers have no bare exponent."""
    assert yaml_scalar(value) == text


@pytest.mark.parametrize("character", ["é", "日", "😀", "\t"])
def test_a_script_stays_legible_whatever_it_prints(character: str) -> None:
    """A text of several lines is a literal block if a reader sees each of its characters."""
    script = f"#!/bin/bash\necho 'a{character}b' \\\n{'  '}--x\n"
    expected = ["a: |", "  #!/bin/bash", f"  echo 'a{character}b' \\", "    --x", ""]
    assert as_text({"a": script}) == "\n".join(expected)


@pytest.mark.parametrize(
    "character", ["\u202e", "\u200b", "\x85", "\u2028", "\xa0", "\r", "e\u0301"]
)
def test_a_character_that_a_block_would_hide_is_escaped(character: str) -> None:
    """A literal block has no escapes, so a text with an invisible or ambiguous character is quoted."""
    (line,) = as_text({"a": f"x\n{character}\n"}).splitlines()
    assert line.startswith('a: "x\\n')
    assert line.isprintable()


def test_lists_and_mappings_are_written_in_block_style() -> None:
    """Lists have their key's indent, mappings two spaces more, and a mapping in a list starts on the dash's line."""
    body = {
        "pools": [
            {
                "machine": {"type": "cloud-tpu", "count": 32},
                "args": ["--a=1", "b"],
                "empty": {},
                "list": [],
            },
            [1, [2, 3], {"a": [4]}],
        ],
        "account": None,
    }
    assert as_text(body) == dedent(
        """\
        pools:
        - machine:
            type: cloud-tpu
            count: 32
          args:
          - "--a=1"
          - b
          empty: {}
          list: []
        - - 1
          - - 2
            - 3
          - a:
            - 4
        account: null
        """
    )


def test_a_script_is_written_as_a_literal_block() -> None:
    """A script keeps its lines and indentation; a text that a literal block would change is quoted."""
    script = "#!/bin/bash\nif true; then\n  echo a: b\n\nfi\n"
    assert as_text(
        {
            "a": {
                "startup-script": script,
                "no-end": "x\ny",
                "two-ends": "x\n\n",
                "indented": "  x\n",
            }
        }
    ) == dedent(
        """\
        a:
          startup-script: |
            #!/bin/bash
            if true; then
              echo a: b

            fi
          no-end: "x\\ny"
          two-ends: "x\\n\\n"
          indented: "  x\\n"
        """
    )


def test_a_value_follows_a_key_of_a_template() -> None:
    """to_yaml() continues a key that a template wrote: on its line for a scalar, below it for a mapping."""
    assert f"a:{to_yaml('x')}\n" == "a: x\n"
    assert f"a:{to_yaml({'b': 1}, 2)}\n" == "a:\n  b: 1\n"
