"""Document to Project: the schema first, then what no schema can say of the structure."""

from itertools import islice
from pathlib import Path as FilePath
from typing import NamedTuple

from tpucfg import schemas
from tpucfg.findings import MOST, Finding, collect, errors
from tpucfg.spec.build import project_of
from tpucfg.spec.document import Document
from tpucfg.spec.model import Project
from tpucfg.spec.placeholders import check_placeholders
from tpucfg.spec.reader import read_file
from tpucfg.spec.sound import of_text, sound_part
from tpucfg.spec.structure import structure_findings


def load(path: FilePath) -> tuple[Project | None, tuple[Finding, ...]]:
    """The project in a file, and every finding about its text and structure. No project where one is an error."""
    return from_document(read_file(path))


def from_document(document: Document) -> tuple[Project | None, tuple[Finding, ...]]:
    """The same for a text that was read before."""
    project, found = examine(document)
    return (None if project is None or project.broken else project), found


class Examined(NamedTuple):
    """What can be said of a spec, whatever is wrong with it."""

    project: Project | None
    """With stand-ins for what is broken; None where there is nothing to go on."""
    findings: tuple[Finding, ...]


def examine(document: Document) -> Examined:
    """The project, as far as the document holds, and every finding about its text and structure."""
    if document.root is None:
        return Examined(None, collect(document.findings))
    found = [*document.findings]
    known = {finding.place[:3] for finding in found}
    found += [it for it in schemas.explain("tpucfg", document, schemas.SPEC) if it.place[:3] not in known]
    if len(found) > MOST:
        return Examined(None, collect(found))
    sound, broken = sound_part(document, errors(found)) if errors(found) else (document, frozenset[str]())
    if not schemas.valid("tpucfg", sound.data):
        return Examined(None, collect(found))
    found += of_text([*structure_findings(sound, broken), *islice(check_placeholders(sound), MOST)])
    if errors(found):
        sound, broken = sound_part(document, errors(found))
    return Examined(project_of(sound, broken), collect(found))
