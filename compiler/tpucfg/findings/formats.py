"""Findings as JSON, as annotations of GitHub and as SARIF, and the sections of docs/findings that SARIF contains."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

from tpucfg import __version__
from tpucfg.findings.finding import Finding, Location
from tpucfg.findings.rules import RULES
from tpucfg.named_tuple import NamedTuple
from tpucfg.package_data import data_folder
from tpucfg.text_format import json_text, printable

_COMMANDS: Final = {"error": "error", "warning": "warning", "note": "notice"}
_SCHEMA: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_FOLDER: Final = "docs/findings"
# Compiled on first use: few commands read the pages.
_SECTION: Final = r"^## (TPU[0-9]{3}): (.+) <a id=.*\n((?:(?!## ).*\n)*)"
_MARK: Final = r"^<!-- .*\n"
_LOCAL_LINK: Final = r"\[([^\]]*)\](?:\((?!https?:)[^)]*\))"


class RuleSection(NamedTuple):
    """A rule's part of a page."""

    address: str
    """The page and the section's anchor, relative to the repository: `docs/findings/figures.md#tpu040`."""
    text: str
    """Markdown, in which a link to another page is its text."""


@cache
def sections() -> dict[str, RuleSection]:
    """Return the sections of all rules, by id."""
    return {
        id_: RuleSection(
            f"{_FOLDER}/{path.name}#{id_.lower()}", _standalone(f"# {id_}: {title}\n{body}")
        )
        for path in data_folder(_FOLDER).glob("*.md")
        for id_, title, body in re.findall(_SECTION, path.read_text(encoding="utf-8"), re.MULTILINE)
    }


def _standalone(text: str) -> str:
    """Return the text without the marks of the script that fills in examples, and without links to other pages."""
    return re.sub(_LOCAL_LINK, r"\1", re.sub(_MARK, "", text, flags=re.MULTILINE)).rstrip() + "\n"


def json_report(findings: Sequence[Finding]) -> str:
    """Return a JSON list of objects in the order of the findings, for other programs."""
    return json_text([_entry(finding) for finding in findings])


def _entry(finding: Finding) -> dict[str, Any]:
    return {
        "id": finding.id,
        "level": finding.level,
        "message": finding.message,
        **finding.location._asdict(),
        "help": finding.help,
        "details": list(finding.details),
        "related": [
            {"message": label, **location._asdict()} for location, label in finding.related
        ],
    }


def github_report(findings: Sequence[Finding]) -> str:
    """Return one workflow command per line, which GitHub shows as an annotation on the lines of a pull request.

    https://docs.github.com/actions/reference/workflow-commands-for-github-actions#setting-an-error-message
    """
    return "".join(f"{_command(finding)}\n" for finding in findings)


def _command(finding: Finding) -> str:
    location = finding.location
    properties = {"file": location.file, "line": location.line, "endLine": location.end_line}
    # GitHub rejects columns if the range spans several lines.
    if location.line == location.end_line:
        properties |= {
            "col": location.column,
            "endColumn": max(location.column, location.end_column - 1),
        }
    properties["title"] = finding.id
    property_list = ",".join(
        f"{key}={_escaped(str(value), ':,')}" for key, value in properties.items()
    )
    text = "\n".join(finding.lines)
    return f"::{_COMMANDS[finding.level]} {property_list}::{_escaped(text)}"


def _escaped(text: str, extra_characters: str = "") -> str:
    # The percent sign is escaped first, because the escapes of the other characters contain it.
    for char in "%\r\n" + extra_characters:
        text = text.replace(char, f"%{ord(char):02X}")
    return printable(text)


def sarif_report(findings: Sequence[Finding]) -> str:
    """Return a log for code scanning with one run of one tool, and the rules of its findings.

    https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
    """
    ids = sorted({finding.id for finding in findings})
    driver = {
        "name": "tpucfg",
        "semanticVersion": __version__,
        "rules": [_rule(id_) for id_ in ids],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, ids.index(finding.id)) for finding in findings],
    }
    return json_text({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(id_: str) -> dict[str, Any]:
    rule, section = RULES[id_], sections()[id_]
    return {
        "id": id_,
        "shortDescription": {"text": rule.title},
        "help": {"text": f"tpucfg explain {id_} ({section.address})", "markdown": section.text},
        "defaultConfiguration": {"level": rule.level},
    }


def _result(finding: Finding, rule_index: int) -> dict[str, Any]:
    text = "\n".join(finding.lines)
    related = [
        {"id": number, "message": {"text": label}, **_location(location)}
        for number, (location, label) in enumerate(finding.related, start=1)
    ]
    return {
        "ruleId": finding.id,
        "ruleIndex": rule_index,
        "level": finding.level,
        "message": {"text": text},
        "locations": [_location(finding.location)],
        **({"relatedLocations": related} if related else {}),
    }


def _location(location: Location) -> dict[str, Any]:
    from urllib.parse import quote  # here, as no other format needs it

    region = dict(
        zip(("startLine", "startColumn", "endLine", "endColumn"), location[1:], strict=True)
    )
    # A file name may contain any bytes. Python decodes invalid UTF-8 as surrogates; the URI escapes the original bytes.
    file = {"uri": quote(location.file, errors="surrogateescape")}
    return {"physicalLocation": {"artifactLocation": file, "region": region}}


REPORTS: Final[Mapping[str, Callable[[Sequence[Finding]], str]]] = {
    "json": json_report,
    "sarif": sarif_report,
    "github": github_report,
}
"""The formats besides text, which shows the source too."""
