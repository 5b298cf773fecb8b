"""Parse a document into a Project: the schema first, then the rules that no schema can express."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path as FilePath

from tpucfg import schemas
from tpucfg.findings import MAX_FINDINGS, Finding, collect, errors
from tpucfg.named_tuple import NamedTuple
from tpucfg.spec.credentials import hidden_text, without_credentials
from tpucfg.spec.placeholders import placeholder_findings
from tpucfg.spec.project import Project, build_project
from tpucfg.spec.semantic_rules import semantic_findings
from tpucfg.yamldoc import Document
from tpucfg.yamldoc.reader import read_file


def load_project(path: FilePath) -> tuple[Project | None, tuple[Finding, ...]]:
    """Return the project in a file, or None if there are errors, and every finding about its text and structure."""
    return project_from_document(read_file(path))


def project_from_document(document: Document) -> tuple[Project | None, tuple[Finding, ...]]:
    """Return the project of a document, or None if there are errors, and every finding."""
    project, findings = parse_project(document)
    return (None if project is None or project.broken else project), findings


class ParsedProject(NamedTuple):
    """The valid part of a spec, and the findings about the rest."""

    project: Project | None
    """The project, with stand-ins for its broken sections; None if the spec is too broken for that."""
    findings: tuple[Finding, ...]


def parse_project(document: Document) -> ParsedProject:
    """Return the valid part of a project, and every finding about its text and structure."""
    if document.root is None:
        return ParsedProject(None, collect(document.findings))
    document = document._replace(text=hidden_text(document))
    findings = [*document.findings]
    # The reader replaces a refused value by 0, which may break the schema too: one finding per location is enough.
    reported = {finding.location[:3] for finding in findings}
    schema_findings = schemas.schema_findings("tpucfg", document, schemas.SPEC)
    schema_findings = without_credentials(document, schema_findings)
    findings += [finding for finding in schema_findings if finding.location[:3] not in reported]
    if len(findings) > MAX_FINDINGS:
        return ParsedProject(None, collect(findings))
    if errors(findings):
        return _parse_invalid(document, findings)
    findings += _rule_findings(document, frozenset())
    return _parse_remaining(document, findings) if errors(findings) else _parsed(document, frozenset(), findings)


def _rule_findings(document: Document, broken: frozenset[str]) -> list[Finding]:
    """Return the findings of the rules that no JSON Schema can express."""
    return [*semantic_findings(document, broken), *islice(placeholder_findings(document), MAX_FINDINGS)]


def _parse_invalid(document: Document, findings: Sequence[Finding]) -> ParsedProject:
    """Apply the rules to the part of a document that its schema errors leave."""
    # Imported here, as most specs are valid and a start pays for what it imports.
    from tpucfg.spec.recovery import replace_broken_sections, without_stand_ins

    repaired, broken = replace_broken_sections(document, errors(findings))
    # An error may be located outside the section that it breaks, so validity is checked and not assumed.
    if not schemas.is_valid("tpucfg", repaired.data):
        return ParsedProject(None, collect(findings))
    return _parse_remaining(document, [*findings, *without_stand_ins(_rule_findings(repaired, broken))])


def _parse_remaining(document: Document, findings: Sequence[Finding]) -> ParsedProject:
    """Build the project from the sections without an error."""
    from tpucfg.spec.recovery import replace_broken_sections

    return _parsed(*replace_broken_sections(document, errors(findings)), findings)


def _parsed(document: Document, broken: frozenset[str], findings: Sequence[Finding]) -> ParsedProject:
    return ParsedProject(build_project(document, broken), collect(findings))
