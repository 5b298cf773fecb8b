"""Changes of the files by which continuous integration runs: they decide what later reviews contain, and its rights."""

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final

from tpucfg.changes.statements import LocatedStatement, Risk, Statement
from tpucfg.text_format import listed

CI_PATHS: Final = tuple(
    PurePosixPath(path)
    for path in (
        ".github",
        ".gitlab-ci.yml",
        ".gitlab",
        ".circleci",
        ".buildkite",
        ".woodpecker",
        ".tekton",
        ".ci",
        ".travis.yml",
        ".cirrus.yml",
        ".drone.yml",
        ".woodpecker.yml",
        "Jenkinsfile",
        "azure-pipelines.yml",
        "bitbucket-pipelines.yml",
        "cloudbuild.yaml",
        "CODEOWNERS",
        "docs/CODEOWNERS",
    )
)
"""The files and folders that the services read, and the files that name who has to approve a change."""
_MAX_FILES: Final = 8


def ci_statements(changed: Sequence[PurePosixPath]) -> Iterator[LocatedStatement]:
    """Yield one caution with the changed files below `CI_PATHS`."""
    if changed:
        template = "{} changed: continuous integration reads it, and decides by it what runs, with which rights"
        names = listed([str(path) for path in changed], _MAX_FILES)
        yield LocatedStatement("", Statement(template, (names,), Risk.UNKNOWN, "continuous integration changed"))
