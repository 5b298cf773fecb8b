"""Findings as SARIF 2.1.0 for code scanning (https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html)."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from tpucfg import __version__
from tpucfg.findings.finding import Finding, Location
from tpucfg.findings.rules import RULES
from tpucfg.findings.sections import sections
from tpucfg.text_format import json_text

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def report(findings: Sequence[Finding], sources: Mapping[str, str], *, colour: bool = False) -> str:  # noqa: ARG001 - the interface of formats
    """Return a log with one run of one tool, and the rules of its findings."""
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
    region = dict(zip(("startLine", "startColumn", "endLine", "endColumn"), location[1:], strict=True))
    # A file name may contain any bytes. Python decodes invalid UTF-8 as surrogates; the URI escapes the original bytes.
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(location.file, errors="surrogateescape")},
            "region": region,
        }
    }
