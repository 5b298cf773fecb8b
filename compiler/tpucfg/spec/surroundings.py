"""What lies beside the spec: the only place where a check looks at other files."""

from collections.abc import Iterator
from pathlib import Path

from tpucfg.findings import Finding
from tpucfg.spec.model import Project


def package_findings(project: Project, folder: Path) -> Iterator[Finding]:
    """A local package that is not there, or that has no build file."""
    yield from ()
