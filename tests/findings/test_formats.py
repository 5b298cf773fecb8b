"""The exact output of each format of findings."""

import json
from textwrap import dedent
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from badspecs import cases, file_of, is_case_of_check, run_check
from sarif_part import WRITTEN
from tpucfg import __version__
from tpucfg.findings import FORMATS, Allowance, Finding, Location, format_counts
from tpucfg.findings.formats import REPORTS, sections
from tpucfg.findings.text import report

SOURCE = "version: 1\nname: MNIST\nsizes: [v3-8, v3-32]\nenvironments:\n  dev:\n    region: us-central1\n"
SIZE = Finding.of(
    "TPU021",
    "v3-32 is not offered in us-central1",
    Location("a.yaml", 3, 15, 3, 20),
    help="leave v3-32 out",
    details=("europe-west4 offers every rung", "the list: https://example.com/a,b"),
    related=((Location("a.yaml", 6, 13, 6, 24), "the region of dev"),),
)
NAME = Finding.of(
    "TPU007", "name is MNIST", Location("a.yaml", 2, 7, 2, 12), help="did you mean mnist?"
)
STEPS = Finding.of("TPU042", "50% of the steps are left", Location("b/ü.yaml", 1, 1, 1, 2))


def text(*findings: Finding, source: str = SOURCE, colour: bool = False) -> str:
    """Return the findings in the text format."""
    return report(findings, {"a.yaml": source}, colour=colour)


def test_text_shows_location_source_facts_and_help() -> None:
    """A paragraph has the location, level, id and message; the source lines with underlines; the facts; the edit."""
    assert text(NAME, SIZE, STEPS) == dedent("""\
        a.yaml:2:7: error[TPU007]: name is MNIST
          |
        2 | name: MNIST
          |       ^^^^^
        help: did you mean mnist?

        a.yaml:3:15: error[TPU021]: v3-32 is not offered in us-central1
          |
        3 | sizes: [v3-8, v3-32]
          |               ^^^^^
        6 |     region: us-central1
          |             ----------- the region of dev
          = europe-west4 offers every rung
          = the list: https://example.com/a,b
        help: leave v3-32 out

        b/ü.yaml:1:1: warning[TPU042]: 50% of the steps are left
        """)


def test_no_findings_are_empty_text_or_an_empty_document() -> None:
    """Without findings, text and annotations are empty; JSON and SARIF are documents without entries."""
    assert text() == ""
    assert REPORTS["github"]([]) == ""
    assert json.loads(REPORTS["json"]([])) == []
    assert json.loads(REPORTS["sarif"]([]))["runs"][0]["results"] == []


def test_two_locations_in_one_line_share_it() -> None:
    """The line is shown once; each location has its own underline, the finding's first."""
    finding = SIZE._replace(
        details=(), help="", related=((Location("a.yaml", 3, 9, 3, 13), "v3-8, 8 cores"),)
    )
    assert text(finding) == dedent("""\
        a.yaml:3:15: error[TPU021]: v3-32 is not offered in us-central1
          |
        3 | sizes: [v3-8, v3-32]
          |               ^^^^^
          |         ---- v3-8, 8 cores
        """)


def test_a_related_location_in_another_file_is_named() -> None:
    """The source line of a related location in another file is not shown."""
    finding = NAME._replace(help="", related=((Location("b.yaml", 9, 2, 9, 3), "makes it so"),))
    assert text(finding).splitlines()[-1] == "  = b.yaml:9:2: makes it so"


def test_the_margin_fits_the_widest_line_number() -> None:
    """The margin is as wide as the widest line number, including related locations."""
    finding = NAME._replace(related=((Location("a.yaml", 12, 1, 12, 2), "there"),))
    assert text(finding, source=SOURCE + "\n" * 5 + "x: 1\n") == dedent("""\
        a.yaml:2:7: error[TPU007]: name is MNIST
           |
         2 | name: MNIST
           |       ^^^^^
        12 | x: 1
           | - there
        help: did you mean mnist?
        """)


@pytest.mark.parametrize(
    ("line", "start", "end", "underlined"),
    [
        ("a: データ/x", 8, 9, "a: データ/x\n          ^"),
        ("データ: x", 1, 4, "データ: x\n^^^^^^"),
        ("a: \uff58x", 5, 6, "a: \uff58x\n     ^"),
        ("e\u0301: x", 5, 6, "e\u0301: x\n   ^"),
        ("a:\tx", 4, 5, "a: x\n   ^"),
        ("a: \u202ex", 5, 6, "a:  x\n    ^"),
        ("a: x", 5, 5, "a: x\n    ^"),
        ("", 1, 1, "\n^"),
    ],
    ids=[
        "behind wide",
        "wide",
        "behind full-width",
        "combining",
        "tab",
        "right to left",
        "behind the end",
        "empty",
    ],
)
def test_the_underline_is_below_its_value(line: str, start: int, end: int, underlined: str) -> None:
    """Wide and combining characters have the width that a terminal gives them; control characters count as a blank."""
    finding = NAME._replace(location=Location("a.yaml", 1, start, 1, end), help="")
    rows = text(finding, source=f"{line}\n").splitlines()[2:]
    assert "\n".join(row[4:] for row in rows) == underlined


def test_a_long_line_is_cut_around_the_location() -> None:
    """Both cuts are marked, and the underline is below the value."""
    finding = NAME._replace(location=Location("a.yaml", 1, 501, 1, 506), help="")
    row, underline = text(finding, source="x" * 500 + "VALUE" + "y" * 500).splitlines()[2:]
    assert row.startswith("1 | …xxx")
    assert row.endswith("yyy…")
    assert len(row) == 4 + 122
    assert row[underline.index("^") : underline.rindex("^") + 1] == "VALUE"


def test_a_value_of_several_lines_is_underlined_in_its_first() -> None:
    """The first line of the value is underlined to its end."""
    finding = NAME._replace(location=Location("a.yaml", 5, 3, 6, 24), help="")
    assert text(finding).splitlines()[2:] == ["5 |   dev:", "  |   ^^^^"]


def test_carriage_returns_are_line_ends() -> None:
    """The output is the same for the line ends of all systems."""
    for end in ("\r\n", "\r"):
        assert text(NAME, source=SOURCE.replace("\n", end)) == text(NAME)


def test_a_location_behind_the_end_shows_no_source() -> None:
    """A location behind the end of the text shows the first line of the finding only."""
    finding = NAME._replace(location=Location("a.yaml", 99, 1, 99, 2), help="")
    assert text(finding) == "a.yaml:99:1: error[TPU007]: name is MNIST\n"
    assert text(finding, source="") == "a.yaml:99:1: error[TPU007]: name is MNIST\n"


def test_colour_is_used_in_the_first_line_only() -> None:
    """The first line has colour; the other lines equal those without colour."""
    coloured = text(NAME, colour=True)
    assert coloured.splitlines()[0] == (
        "\033[1ma.yaml:2:7\033[0m: \033[1;31merror[TPU007]\033[0m: \033[1mname is MNIST\033[0m"
    )
    assert coloured.splitlines()[1:] == text(NAME).splitlines()[1:]


def test_no_control_character_reaches_the_terminal() -> None:
    """Control characters in any part of a finding are printed as escapes."""
    hostile = "\033[2J\a\u202e\n"
    finding = Finding.of(
        "TPU007",
        hostile,
        Location(f"a{hostile}.yaml", 1, 1, 1, 2),
        help=hostile,
        details=(hostile,),
        related=((Location("b.yaml"), hostile),),
    )
    printed = report([finding], {})
    assert all(line.isprintable() for line in printed.splitlines())
    assert "\\u001b[2J" in printed


def test_json_has_every_field_of_a_finding() -> None:
    """The list has one object per finding, in order."""
    printed = REPORTS["json"]([SIZE, STEPS])
    assert json.loads(printed) == [
        {
            "id": "TPU021",
            "level": "error",
            "message": "v3-32 is not offered in us-central1",
            "file": "a.yaml",
            "line": 3,
            "column": 15,
            "end_line": 3,
            "end_column": 20,
            "help": "leave v3-32 out",
            "details": ["europe-west4 offers every rung", "the list: https://example.com/a,b"],
            "related": [
                {
                    "message": "the region of dev",
                    "file": "a.yaml",
                    "line": 6,
                    "column": 13,
                    "end_line": 6,
                    "end_column": 24,
                }
            ],
        },
        {
            "id": "TPU042",
            "level": "warning",
            "message": "50% of the steps are left",
            "file": "b/ü.yaml",
            "line": 1,
            "column": 1,
            "end_line": 1,
            "end_column": 2,
            "help": "",
            "details": [],
            "related": [],
        },
    ]
    assert printed.endswith("]\n")


def test_github_has_one_workflow_command_per_finding() -> None:
    """Each line is a workflow command, with GitHub's own delimiters escaped."""
    wide = NAME._replace(location=Location("a.yaml", 5, 3, 6, 24), level="note")
    assert REPORTS["github"]([SIZE, STEPS, wide]) == (
        "::error file=a.yaml,line=3,endLine=3,col=15,endColumn=19,title=TPU021::v3-32 is not offered in us-central1"
        "%0Aeurope-west4 offers every rung%0Athe list: https://example.com/a,b%0Ahelp: leave v3-32 out\n"
        "::warning file=b/ü.yaml,line=1,endLine=1,col=1,endColumn=1,title=TPU042::50%25 of the steps are left\n"
        "::notice file=a.yaml,line=5,endLine=6,title=TPU007::name is MNIST%0Ahelp: did you mean mnist?\n"
    )


def test_github_escapes_delimiters_in_properties() -> None:
    """A file name cannot inject a property or a second command."""
    finding = NAME._replace(location=Location("a,b:c%\n::error.yaml", 1, 1, 1, 2))
    (line,) = REPORTS["github"]([finding]).splitlines()
    assert line.startswith("::error file=a%2Cb%3Ac%25%0A%3A%3Aerror.yaml,line=1,")


def sarif(*findings: Finding) -> Any:
    """Return the only run of the log."""
    log = json.loads(REPORTS["sarif"](findings))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    return run


def test_sarif_escapes_a_file_name_of_any_bytes() -> None:
    """The URI of a file whose name is not UTF-8 has its bytes, percent-encoded."""
    (result,) = sarif(
        SIZE._replace(location=SIZE.location._replace(file="\udcff \x1b.yaml"), related=())
    )["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "%FF%20%1B.yaml"


def test_sarif_has_rules_and_results() -> None:
    """The run has the rules that occur, and a result per finding with its level and locations."""
    run = sarif(SIZE, STEPS)
    assert run["tool"]["driver"] == {
        "name": "tpucfg",
        "semanticVersion": __version__,
        "rules": [
            {
                "id": "TPU021",
                "shortDescription": {"text": "a size that the region does not offer"},
                "help": {
                    "text": "tpucfg explain TPU021 (docs/findings/sizes-and-regions.md#tpu021)",
                    "markdown": sections()["TPU021"].text,
                },
                "defaultConfiguration": {"level": "error"},
            },
            {
                "id": "TPU042",
                "shortDescription": {"text": "few steps left"},
                "help": {
                    "text": "tpucfg explain TPU042 (docs/findings/figures.md#tpu042)",
                    "markdown": sections()["TPU042"].text,
                },
                "defaultConfiguration": {"level": "warning"},
            },
        ],
    }
    region = {"startLine": 6, "startColumn": 13, "endLine": 6, "endColumn": 24}
    assert run["results"] == [
        {
            "ruleId": "TPU021",
            "ruleIndex": 0,
            "level": "error",
            "message": {
                "text": "v3-32 is not offered in us-central1\neurope-west4 offers every rung\n"
                "the list: https://example.com/a,b\nhelp: leave v3-32 out"
            },
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": "a.yaml"},
                        "region": {
                            "startLine": 3,
                            "startColumn": 15,
                            "endLine": 3,
                            "endColumn": 20,
                        },
                    }
                }
            ],
            "relatedLocations": [
                {
                    "id": 1,
                    "message": {"text": "the region of dev"},
                    "physicalLocation": {"artifactLocation": {"uri": "a.yaml"}, "region": region},
                }
            ],
        },
        {
            "ruleId": "TPU042",
            "ruleIndex": 1,
            "level": "warning",
            "message": {"text": "50% of the steps are left"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": "b/%C3%BC.yaml"},
                        "region": {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 2},
                    }
                }
            ],
        },
    ]
    assert run["columnKind"] == "unicodeCodePoints"


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_prints_the_whole_corpus(name: str) -> None:
    """Every finding of the corpus can be printed in each format, with one exit status; SARIF follows its schema."""
    for folder in cases():
        if not is_case_of_check(folder):
            continue  # tpucfg infra and tpucfg submit have no --format for findings
        status, out, err = run_check(file_of(folder), "--format", name)
        assert err == ""
        assert status == (1 if ": error[" in (folder / "expected.txt").read_text() else 0)
        if name in {"json", "sarif"}:
            document = json.loads(out)
            assert name == "json" or not list(Draft202012Validator(WRITTEN).iter_errors(document))
        if name == "github":
            assert all(
                line.startswith(("::error ", "::warning ", "::notice "))
                for line in out.splitlines()
            )


def test_counts_are_summarized_in_words() -> None:
    """The summary counts each level, and has a word for none."""
    note = SIZE.allowed_by({SIZE.id: Allowance("quota granted")})
    assert format_counts([]) == "no findings"
    assert format_counts([SIZE]) == "1 error"
    assert format_counts([SIZE, NAME, STEPS]) == "2 errors and 1 warning"
    assert format_counts([SIZE, STEPS, STEPS, note]) == "1 error, 2 warnings and 1 note"
    assert format_counts([note]) == "1 note"
