"""Changes of files that concern no single spec: of continuous integration and of images."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final

from tpucfg.changes.facts import Risk
from tpucfg.changes.statements import LocatedStatement, Statement
from tpucfg.text_format import listed

_HARMLESS: Final = (
    ".gitignore",
    ".dockerignore",
    ".gcloudignore",
    ".editorconfig",
    ".mailmap",
    ".git-blame-ignore-revs",
    ".python-version",
)
"""Hidden files at the root that start nothing. What Pulumi reads of them is compared with the stack program."""
_CI_NAMES: Final = re.compile(
    r"action\.ya?ml|.*gitlab-ci\.ya?ml|.*-pipelines.*\.ya?ml|.*cloudbuild.*\.(?:ya?ml|json)|buildspec.*\.ya?ml"
    r"|appveyor\.ya?ml|codefresh\.ya?ml|jenkinsfile.*|codeowners|\.gitattributes",
    re.IGNORECASE,
)
"""Names of files that services of continuous integration read in any folder, and of those that name who approves."""
_OWNERS: Final = "codeowners"
_DOCKERFILE: Final = r"(?:[^/]*[.-])?(?:docker|container)file[^/]*"
_REQUIREMENTS: Final = r"(?:[^/]*requirements|[^/]*constraints)[^/]*(?:/.*)?\.(?:txt|in)"
_BUILD_PATHS: Final = re.compile(
    rf"(?:.*/)?(?:{_DOCKERFILE}|(?:docker-)?compose[^/]*\.ya?ml"
    rf"|{_REQUIREMENTS}|pyproject\.toml|setup\.(?:py|cfg)|[^/]*\.lock|[^/]*-lock\.(?:json|ya?ml)"
    r"|pipfile|pip\.conf|uv\.toml|environment\.ya?ml|(?:gnu)?makefile|[^/]*\.mk|justfile|package\.json|docker-bake[^/]*|\.dockerignore|[^/]*\.(?:sh|whl|so))",
    re.IGNORECASE,
)
"""Files from which images are built: what `docker build` and the installers of packages read, and scripts."""
_MAX_FILES: Final = 8


def ci_paths(files: Collection[PurePosixPath]) -> tuple[PurePosixPath, ...]:
    """Return the files and folders by which services and tools decide what they run on their own.

    Nearly all of them read what is hidden at the root of a repository: each such file counts, unless it is harmless.
    """
    hidden = {path.parts[0] for path in files if path.parts[0].startswith(".")}.difference(
        _HARMLESS
    )
    named = {
        path for path in files if _CI_NAMES.fullmatch(path.name) and path.parts[0] not in hidden
    }
    return tuple(sorted({*map(PurePosixPath, hidden), *named}))


def ci_statements(changed: Sequence[PurePosixPath]) -> Iterator[LocatedStatement]:
    """Yield a caution with the changed files at or below `ci_paths`, and one with those that name who approves."""
    owners = [path for path in changed if path.name.lower() == _OWNERS]
    others = [path for path in changed if path not in owners]
    text = "{} changed: continuous integration or another tool decides by it what runs, with which rights"
    yield from _of_files(others, text, Risk.UNKNOWN, "continuous integration changed")
    yield from _of_files(
        owners, "{} changed: it decides who has to approve a change", Risk.UNKNOWN, "owners changed"
    )


def build_paths(files: Iterable[PurePosixPath]) -> list[PurePosixPath]:
    """Return the files from which images are built, sorted."""
    return sorted(path for path in files if _BUILD_PATHS.fullmatch(str(path)))


def requirements_paths(files: Iterable[PurePosixPath]) -> list[PurePosixPath]:
    """Return the files that can name others with packages of an image."""
    return sorted(
        path
        for path in files
        if re.fullmatch(rf"(?:.*/)?{_REQUIREMENTS}", str(path), re.IGNORECASE)
    )


def build_statements(changed: Sequence[PurePosixPath]) -> Iterator[LocatedStatement]:
    """Yield a caution with the changed files from which images are built."""
    text = "{} changed: what is built or run with it differs from now on"
    yield from _of_files(changed, text, Risk.CAUTION, "image build changed")


def _of_files(
    paths: Sequence[PurePosixPath], text: str, risk: Risk, headline: str
) -> Iterator[LocatedStatement]:
    if paths:
        yield LocatedStatement(
            "", Statement(text, (listed([*map(str, paths)], _MAX_FILES),), risk, headline)
        )
