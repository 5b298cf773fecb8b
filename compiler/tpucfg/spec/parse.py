"""Document to Project: the schema first, then what no schema can say of the structure."""

from itertools import islice
from pathlib import Path as FilePath
from typing import NamedTuple

from tpucfg import schemas
from tpucfg.findings import MAX_FINDINGS, Finding, collect, errors
from tpucfg.spec.placeholders import placeholder_findings
from tpucfg.spec.project import Project, build_project
from tpucfg.spec.recovery import replace_broken_sections, without_stand_ins
from tpucfg.spec.semantic_rules import semantic_findings
from tpucfg.yamldoc.document import Document
from tpucfg.yamldoc.reader import read_file


def load_project(path: FilePath) -> tuple[Project | None, tuple[Finding, ...]]:
    """The project in a file, and every finding about its text and structure. No project where one is an error."""
    return project_from_document(read_file(path))


def project_from_document(document: Document) -> tuple[Project | None, tuple[Finding, ...]]:
    """The same for a text that was read before."""
    project, found = parse_project(document)
    return (None if project is None or project.broken else project), found


class ParsedProject(NamedTuple):
    """What can be said of a spec, whatever is wrong with it."""

    project: Project | None
    """With stand-ins for what is broken; None where there is nothing to go on."""
    findings: tuple[Finding, ...]


def parse_project(document: Document) -> ParsedProject:
    """The project, as far as the document holds, and every finding about its text and structure."""
    if document.root is None:
        return ParsedProject(None, collect(document.findings))
    found = [*document.findings]
    known = {finding.location[:3] for finding in found}
    found += [it for it in schemas.schema_findings("tpucfg", document, schemas.SPEC) if it.location[:3] not in known]
    if len(found) > MAX_FINDINGS:
        return ParsedProject(None, collect(found))
    sound, broken = replace_broken_sections(document, errors(found)) if errors(found) else (document, frozenset[str]())
    if not schemas.is_valid("tpucfg", sound.data):
        return ParsedProject(None, collect(found))
    found += without_stand_ins([*semantic_findings(sound, broken), *islice(placeholder_findings(sound), MAX_FINDINGS)])
    if errors(found):
        sound, broken = replace_broken_sections(document, errors(found))
    return ParsedProject(build_project(sound, broken), collect(found))
