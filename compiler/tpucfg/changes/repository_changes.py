"""Changes of files that concern no single spec: of continuous integration and of images."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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
    rf"|{_REQUIREMENTS}|pyproject\.toml|setup\.(?:py|cfg)|[^/]*\.lock"
    r"|pipfile|pip\.conf|uv\.toml|environment\.ya?ml|makefile|justfile|package\.json|docker-bake[^/]*|\.dockerignore|[^/]*\.(?:sh|whl|so))",
    re.IGNORECASE,
)
"""Files from which images are built: what `docker build` and the installers of packages read, and scripts."""
_COMMENT: Final = re.compile(
    r"(?:^|\s)#(?!!|[ \t]*(?:syntax|escape|check)[ \t]*=)[^'\"\n]*$", re.MULTILINE | re.IGNORECASE
)
"""What nothing reads, unlike the name of an interpreter and directives of BuildKit, which look like comments."""
_IP_ADDRESS: Final = r"(?!127\.|0\.0\.0\.0)[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![\w.])"
_VERSION: Final = re.compile(
    rf"(?<![\w.])(?!{_IP_ADDRESS})v?[0-9][\w.+!-]*|\b[0-9a-f]{{32,}}\b|(?<=/)[0-9a-f]{{2}}(?=/)", re.IGNORECASE
)
"""A number, a version with what follows it, or a hash, also as the folders in which an index keeps a package."""
_ADDRESS: Final = re.compile(
    r"(?:[a-z][a-z0-9+.-]*:)?//[^\s/'\"]+(?:/[^\s/'\"?]+(?=/))?|git@[\w.-]+"
    rf"|(?<![^\s'\"=(])(?:[a-z0-9-]+\.)+[a-z]{{2,}}(?:/[^\s/'\"]+)?(?=/)|(?<![\w.]){_IP_ADDRESS}",
    re.IGNORECASE,
)
"""The host of an address, with the first folder, which names the owner on hosts of many; also without a scheme."""
_MAX_FILES: Final = 8
_MAX_LINES: Final = 4


def ci_paths(files: Collection[PurePosixPath]) -> tuple[PurePosixPath, ...]:
    """Return the files and folders by which services and tools decide what they run on their own.

    Nearly all of them read what is hidden at the root of a repository: each such file counts, unless it is harmless.
    """
    hidden = {path.parts[0] for path in files if path.parts[0].startswith(".")}.difference(_HARMLESS)
    named = {path for path in files if _CI_NAMES.fullmatch(path.name) and path.parts[0] not in hidden}
    return tuple(sorted({*map(PurePosixPath, hidden), *named}))


def ci_statements(changed: Sequence[PurePosixPath]) -> Iterator[LocatedStatement]:
    """Yield a caution with the changed files at or below `ci_paths`, and one with those that name who approves."""
    owners = [path for path in changed if path.name.lower() == _OWNERS]
    others = [path for path in changed if path not in owners]
    text = "{} changed: continuous integration or another tool decides by it what runs, with which rights"
    yield from _of_files(others, text, Risk.UNKNOWN, "continuous integration changed")
    yield from _of_files(owners, "{} changed: it decides who has to approve a change", Risk.UNKNOWN, "owners changed")


def build_paths(files: Iterable[PurePosixPath]) -> list[PurePosixPath]:
    """Return the files from which images are built, sorted."""
    return sorted(path for path in files if _BUILD_PATHS.fullmatch(str(path)))


def requirements_paths(files: Iterable[PurePosixPath]) -> list[PurePosixPath]:
    """Return the files that can name others with packages of an image."""
    return sorted(path for path in files if re.fullmatch(rf"(?:.*/)?{_REQUIREMENTS}", str(path), re.IGNORECASE))


def program_paths(files: Iterable[PurePosixPath], images: Iterable[PurePosixPath]) -> list[PurePosixPath]:
    """Return the Python files in the folders of Dockerfiles: the programs of images."""
    folders = {path.parent for path in images if re.fullmatch(_DOCKERFILE, path.name, re.IGNORECASE)}
    return sorted(path for path in files if path.suffix == ".py" and not folders.isdisjoint(path.parents))


def build_statements(
    changed: Sequence[PurePosixPath], before: Mapping[PurePosixPath, bytes], after: Mapping[PurePosixPath, bytes | None]
) -> Iterator[LocatedStatement]:
    """Yield the changed files from which images are built, with their lines, and cautions about what is new in them.

    A line that no such file of the base has is a caution, unless only numbers and versions differ: it can install
    another package, run another command or take code from elsewhere. Of programs, the addresses are compared.

    Args:
        changed: Those that differ.
        before: All such files of the base, with their contents.
        after: Those that differ and that head has, with their contents; None for what cannot be read.
    """
    unread = [path for path, content in after.items() if content is None or b"\0" in content]
    yield from _of_files(changed, "{} changed: what is built or run with it differs from now on", Risk.NONE, "")
    yield from _of_files(unread, "{} cannot be read by this review, and images are built by it", Risk.CAUTION, "")
    parts = (part for path, content in before.items() for part in (*_parts(path, content), *_addresses(content)))
    known = {_form(part) for part in parts}
    for path in sorted({*changed}.difference(unread)):
        old, new = (_parts(path, contents.get(path) or b"") for contents in (before, after))
        unknown = {part: None for part in new if _form(part) not in known}
        # What is a risk comes first, as lists are cut.
        added = [*unknown, *(part for part in new if part not in old and part not in unknown)]
        differing = {"adds": added, "drops": [part for part in old if part not in new]}
        verbs = [verb for verb, lines in differing.items() if lines]
        text = f"{{}} {' and '.join(f'{verb} {{}}' for verb in verbs)}"
        values = (str(path), *(listed(differing[verb], _MAX_LINES) for verb in verbs))
        if unknown:
            statement = Statement(f"{text}: new to what is built", values, Risk.CAUTION, "new code in images")
            yield LocatedStatement("", statement)
        elif verbs:
            yield LocatedStatement("", Statement(text, values))


def _parts(path: PurePosixPath, content: bytes) -> dict[str, None]:
    """Return the lines of a file, without comments; of a program, the addresses in it."""
    lines = (" ".join(line.split()).rstrip(" ,\\") for line in _text(content).splitlines())
    return _addresses(content) if path.suffix == ".py" else dict.fromkeys(filter(None, lines))


def _addresses(content: bytes) -> dict[str, None]:
    return dict.fromkeys(_ADDRESS.findall(_text(content)))


def _text(content: bytes) -> str:
    return _COMMENT.sub("", content.decode(errors="replace"))


def _form(part: str) -> str:
    """Return a line or an address without its numbers and versions."""
    return _VERSION.sub("0", part)


def _of_files(paths: Sequence[PurePosixPath], text: str, risk: Risk, headline: str) -> Iterator[LocatedStatement]:
    if paths:
        yield LocatedStatement("", Statement(text, (listed([*map(str, paths)], _MAX_FILES),), risk, headline))
