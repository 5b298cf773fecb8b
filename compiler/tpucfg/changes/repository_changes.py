"""Changes of files that concern no single spec: those of continuous integration, and names that two files share."""

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePosixPath
from typing import Final

from tpucfg.changes.statements import LocatedStatement, Risk, Statement
from tpucfg.git.changed_files import NameCollision, SharedName
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
    r"|appveyor\.ya?ml|codefresh\.ya?ml|jenkinsfile.*|codeowners",
    re.IGNORECASE,
)
"""Names of files that services of continuous integration read in any folder, and of those that name who approves."""
_MAX_FILES: Final = 8
_MAX_NAMED: Final = 4
_COLLISION: Final = (
    "{} and {} are one name where case is ignored, as on macOS and Windows: git checks out only one of them, and "
    "Pulumi may read another file than this review"
)
_SHARED: Final = (
    "{} has the project name {}, as {} has: their stacks are the same, and an update of one changes or deletes "
    "resources of the other"
)


def ci_paths(files: Collection[PurePosixPath]) -> tuple[PurePosixPath, ...]:
    """Return the files and folders by which services and tools decide what they run on their own.

    Nearly all of them read what is hidden at the root of a repository: each such file counts, unless it is harmless.
    """
    hidden = {path.parts[0] for path in files if path.parts[0].startswith(".")}.difference(_HARMLESS)
    named = {path for path in files if _CI_NAMES.fullmatch(path.name) and path.parts[0] not in hidden}
    return tuple(sorted({*map(PurePosixPath, hidden), *named}))


def ci_statements(changed: Sequence[PurePosixPath]) -> Iterator[LocatedStatement]:
    """Yield one caution with the changed files at or below `ci_paths`."""
    if changed:
        template = "{} changed: continuous integration or another tool decides by it what runs, with which rights"
        names = listed([str(path) for path in changed], _MAX_FILES)
        yield LocatedStatement("", Statement(template, (names,), Risk.UNKNOWN, "continuous integration changed"))


def collision_statements(collisions: Sequence[NameCollision]) -> list[LocatedStatement]:
    """Return a sentence for each of the first collisions."""
    pairs = [(str(collision.added), str(collision.other)) for collision in collisions]
    return _first_statements(_COLLISION, pairs, "names that differ only in case")


def shared_project_statements(shared: Sequence[SharedName]) -> list[LocatedStatement]:
    """Return a sentence for each of the first projects with the name of another one."""
    names = [(str(item.file), item.name, str(item.other)) for item in shared]
    return _first_statements(_SHARED, names, "stacks of another project used")


def _first_statements(template: str, values: Sequence[tuple[str, ...]], headline: str) -> list[LocatedStatement]:
    """Return a sentence for each of the first values, and the number of the others."""
    statements = [Statement(template, texts, Risk.DESTRUCTIVE, headline) for texts in values[:_MAX_NAMED]]
    if more := len(values) - len(statements):
        statements.append(Statement(f"{more:,} more {headline}", (), Risk.DESTRUCTIVE, headline))
    return [LocatedStatement("", statement) for statement in statements]
