"""Changes of files that concern no single spec: of continuous integration and of images."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
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
_COMMENT: Final = re.compile(
    r"[ \t]*#(?!!|[ \t]*(?:syntax|escape|check)[ \t]*=)[^$`]*(?<!\\)", re.IGNORECASE
)
"""A line that nothing reads: no directive of BuildKit, and nothing that make or a shell expands in it."""
_CONTINUED: Final = re.compile(r"(?<![ \t])[ \t]*+\\\n[ \t]*+")
_IP_ADDRESS: Final = r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![\w.])"
_SUFFIX: Final = r"(?:[.+~-]|(?=[a-z]))(?:a|b|rc|dev|post|cu|deb|ubuntu|u)?[0-9]++"
_VERSION: Final = re.compile(
    rf"(?<![\w.])(?!{_IP_ADDRESS})v?[0-9]++(?:\.[0-9]++){{1,6}}+(?:{_SUFFIX}){{0,3}}+(?![\w+~])"
    r"|(?<=@sha256:)[0-9a-f]{64}\b"
)
"""A version with a point in it, or the digest of an image."""
_HASH: Final = re.compile(
    r"(?: --hash=\S+)+|\b[0-9a-f]{32,128}\b|\bsha512-[\w+/=]+|(?<=/)[0-9a-f]{2}(?=/)"
    r"|-(?:py|cp|pp)[0-9][\w.]*-[\w.]+-[\w.]+\.whl|(?:size|upload-time) = \"?[0-9][0-9TZ:.-]*"
)
"""Parts of a locked package that change with its version: hashes, the platforms of its wheels, sizes and times."""
_ADDRESS: Final = re.compile(
    r"(?:(?<![\w+.-])[a-z][a-z0-9+.-]{0,20}:|(?<![^\s'\"=(]))//[^\s/'\"]+(?:/[^\s/'\"?]+(?=/))?|git@[\w.-]+"
    rf"|(?<![^\s'\"=(])(?:[a-z0-9-]+\.)+[a-z]{{2,}}(?:/[^\s/'\"]+)?(?=/)|(?<![\w.])(?!127\.|0\.0\.0\.0){_IP_ADDRESS}",
    re.IGNORECASE,
)
"""The host of an address, with the first folder, which names the owner on hosts of many; also without a scheme."""
_DOCUMENTS: Final = (".md", ".rst", ".png", ".jpg", ".svg", ".pdf")
_MAX_FILES: Final = 8
_MAX_LINES: Final = 4
_HEADLINE: Final = "image build changed"


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


def program_paths(
    files: Iterable[PurePosixPath], images: Iterable[PurePosixPath]
) -> list[PurePosixPath]:
    """Return the files in the folders of Dockerfiles, but for documents: the programs of images."""
    folders = {
        path.parent for path in images if re.fullmatch(_DOCKERFILE, path.name, re.IGNORECASE)
    }
    in_folders = (path for path in files if not folders.isdisjoint(path.parents))
    return sorted(path for path in in_folders if path.suffix not in _DOCUMENTS)


def build_statements(
    changed: Sequence[PurePosixPath],
    programs: Collection[PurePosixPath],
    before: Mapping[PurePosixPath, bytes],
    after: Mapping[PurePosixPath, bytes | None],
) -> Iterator[LocatedStatement]:
    """Yield the changed files from which images are built, with their lines, and cautions about what is new in them.

    Newer versions are a change, with their hashes. Whatever else differs is a caution: it can install another package,
    run another command or take code from elsewhere. Of programs, but for scripts, the addresses are compared.

    Args:
        changed: Those that differ.
        programs: Those of them that are programs of images.
        before: The same files of the base with their contents, and all others of it if there are programs.
        after: Those that differ and that head has, with their contents; None for what cannot be read.
    """
    unread = [path for path, content in after.items() if content is None or b"\0" in content]
    yield from _of_files(
        changed,
        "{} changed: what is built or run with it differs from now on",
        Risk.NONE,
        _HEADLINE,
    )
    yield from _of_files(
        unread, "{} cannot be read by this review, and images are built by it", Risk.CAUTION, ""
    )
    known = (
        {address for content in before.values() for address in _addresses(content)}
        if programs
        else set()
    )
    for path in sorted({*changed}.difference(unread)):
        contents = [files.get(path) or b"" for files in (before, after)]
        if path in programs and not contents[1].startswith(b"#!"):
            old, new = map(_addresses, contents)
            yield from _difference(
                path, old, new, "" if known.issuperset(new) else "it is new to what is built"
            )
        else:
            old, new = map(_lines, contents)
            yield from _difference(
                path, old, new, "more than newer versions" if _is_more(old, new) else ""
            )


def _difference(
    path: PurePosixPath, before: Sequence[str], after: Sequence[str], caution: str
) -> Iterator[LocatedStatement]:
    """Yield a statement with the lines that a file adds and drops, and the reason for a caution, if there is one."""
    # A line of hashes has nothing to read.
    old, new = (
        {line: form for line in lines if (form := _form(line)).strip(" \\")}
        for lines in (before, after)
    )
    forms = {*old.values()}
    # What is new comes first, and not only its version.
    added = sorted((line for line in new if line not in old), key=lambda line: new[line] in forms)
    dropped = [line for line in old if line not in new]
    events = [
        f"{verb} {_places(lines)}" for verb, lines in (("adds", added), ("drops", dropped)) if lines
    ]
    text = f"{{}} {' and '.join(events) or 'has other hashes, or its lines in another order'}"
    values = (str(path), *added[:_MAX_LINES], *dropped[:_MAX_LINES])
    if caution:
        yield LocatedStatement("", Statement(f"{text}: {caution}", values, Risk.CAUTION, _HEADLINE))
    elif events:
        yield LocatedStatement("", Statement(text, values))


def _places(lines: Sequence[str]) -> str:
    """Return a place for each of the first lines, and the number of the others."""
    more = f" and {len(lines) - _MAX_LINES:,} more" if len(lines) > _MAX_LINES else ""
    return ", ".join(["{}"] * min(len(lines), _MAX_LINES)) + more


def _is_more(before: Sequence[str], after: Sequence[str]) -> bool:
    """Return True unless each line, with those that continue it, is as before, or has newer versions."""
    logical = (_CONTINUED.sub(" ", "\n".join(lines)).split("\n") for lines in (before, after))
    old, new = ([(form, [*lines]) for form, lines in groupby(each, _form)] for each in logical)
    if [form for form, _ in old] != [form for form, _ in new]:
        return True
    pairs = (
        pair
        for (_, first), (_, other) in zip(old, new, strict=True)
        for pair in zip(first, other, strict=False)
    )
    return any(_is_suspect(*pair) for pair in pairs)


def _is_suspect(before: str, after: str) -> bool:
    """Return True for a line that differs without a newer version."""
    old, new = (_VERSION.findall(line) for line in (before, after))
    is_older = any(_order(first) > _order(other) for first, other in zip(old, new, strict=False))
    return before != after and (is_older or old == new)


def _order(version: str) -> list[str]:
    """Return the numbers of a version as texts of one length; digests have no order."""
    return (
        [number.rjust(12, "0") for number in re.findall("[0-9]+", version)]
        if "." in version
        else []
    )


def _lines(content: bytes) -> list[str]:
    """Return the lines of a file, without empty ones and comments."""
    # Only what tools take for the end of a line: other characters would make a comment of what is none.
    lines = (line.rstrip(" \t\r") for line in content.decode(errors="replace").split("\n"))
    return [line for line in lines if line and not _COMMENT.fullmatch(line)]


def _form(line: str) -> str:
    """Return a line without versions, and what changes with them."""
    return _HASH.sub("", _VERSION.sub("0", line))


def _addresses(content: bytes) -> list[str]:
    """Return the addresses in a file, without those in comments."""
    return [
        *dict.fromkeys(address for line in _lines(content) for address in _ADDRESS.findall(line))
    ]


def _of_files(
    paths: Sequence[PurePosixPath], text: str, risk: Risk, headline: str
) -> Iterator[LocatedStatement]:
    if paths:
        yield LocatedStatement(
            "", Statement(text, (listed([*map(str, paths)], _MAX_FILES),), risk, headline)
        )
