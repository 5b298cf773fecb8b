"""Notes about the fits of a ladder, as lines of text below its table."""

from collections.abc import Iterator

from tpucfg.fit.fit_file import NAME
from tpucfg.fit.fit_findings import fit_findings
from tpucfg.fit.known_fits import KnownFits, unknown_fits_text
from tpucfg.results.bound_check import records_beyond_bound
from tpucfg.results.ladder_status import LadderStatus
from tpucfg.spec.project import Project


def fit_notes(project: Project, status: LadderStatus, fits: KnownFits) -> Iterator[str]:
    """Yield a note about each step that does not fit or hardly does, each unlikely record, and what is not known."""
    if fits.file.findings:
        yield f"{fits.file.path} cannot be read, so no fit is known"
        return
    findings = (*fit_findings(project, fits.rungs.values()), *records_beyond_bound(project, status))
    # Notes are findings that the spec allows.
    yield from (finding.message for finding in findings if finding.level != "note")
    if unknown := unknown_fits_text(fits, status.environment.name):
        yield unknown
    if any(fit.result and not fit.is_trusted for fit in fits.rungs.values()):
        yield f"HBM is as committed in results/{NAME}"
