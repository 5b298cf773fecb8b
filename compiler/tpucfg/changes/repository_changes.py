"""Changes of files that concern no single spec: of continuous integration and of images."""

import configparser
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any, Final

from tpucfg.changes.facts import Risk
from tpucfg.changes.job_meanings import registry_of
from tpucfg.changes.statements import LocatedStatement, Statement
from tpucfg.text_format import listed
from tpucfg.yamldoc.reader import read_text

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
    r"|pipfile|pip\.conf|uv\.toml|environment\.ya?ml|makefile|docker-bake[^/]*|\.dockerignore|[^/]*\.(?:sh|whl|so))",
    re.IGNORECASE,
)
"""Files from which images are built: what `docker build` and the installers of packages read, and scripts."""
_ADDRESS: Final = r"(?!127\.|0\.0\.0\.0)[0-9]{1,3}(?:\.[0-9]{1,3}){3}"
_HOST: Final = rf"(?:(?:[a-z0-9-]+\.)+[a-z]{{2,}}|{_ADDRESS})(?::[0-9]+)?"
_SOURCE: Final = re.compile(
    rf"(?:[a-z][a-z0-9+.-]*://(?:[^\s/@]*@)?|git@)[^\s/'\"?#,;)]+(?:[/:][^\s/'\"]+(?=/))?"
    rf"|(?<![^\s'\"=(])(?:{_HOST}(?=/)|//{_HOST})|(?<![^\s'\"(]){_ADDRESS}(?![\w.])",
    re.IGNORECASE,
)
"""The host of an address, with the first folder, which names the owner on hosts of many; also without a scheme.

Four numbers after an equals sign are a version.
"""
_IMAGE: Final = re.compile(
    r"(?:^\s*FROM\s+(?:--\S+\s+)*|\s--from=|^#\s*syntax\s*=|^\s*ARG\s+\w+=|\bimage:\s)\s*[\"']?([\w.$\{}:/@-]+)",
    re.IGNORECASE | re.MULTILINE,
)
"""An image in a build file: of FROM, `--from`, a syntax line, the default of ARG, or `image:` of a service."""
_REQUIREMENT: Final = re.compile(r"^[ \t]*([A-Za-z0-9./][^\s;#\\]*(?:[ \t]*@[ \t]*[^\s;#]+)?)", re.MULTILINE)
"""A package of a requirements file, with its extras, its version if there is no space before it, or its address."""
_COMMENT: Final = re.compile(r"^[ \t]*#(?![ \t]*(?:syntax|escape|check)[ \t]*=).*", re.MULTILINE | re.IGNORECASE)
"""A line that nothing reads; BuildKit reads directives, which look like comments."""
_DEPENDENCIES: Final = re.compile(r".*dependenc.*|.*requires|build-backend|(?:dev-)?packages|sources?|channels")
"""Keys in files of packages below which all texts and names are packages, or where they come from."""
_CONTINUED: Final = re.compile(r"\\[ \t]*\n")
_COMMAND_ENDS: Final = re.compile(r"[;&|\n]|\s[0-9]*[<>]")
_WORDS: Final = re.compile(r"[^\s\"',()]+")
_INSTALLING: Final = ("install", "add", "i")
"""Words after which package managers take the names of packages: `pip install`, `apk add`, `npm i`."""
_PACKAGE: Final = re.compile(r"(?!.*\.(?:txt|in)$)(?:@[^/]+/)?[A-Za-z0-9$][^/]*")
"""A word of such a command that is no option, no path and no requirements file; with `$`, its value is not known."""
_PACKAGE_NAME: Final = re.compile(r"(?:@[^/]+/)?[\w.${}-]*")
_MAX_FILES: Final = 8


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
    """Yield the changed files from which images are built, their packages, and a caution about code from elsewhere.

    Args:
        changed: Those that differ.
        before: All such files of the base, with their contents.
        after: Those that differ and that head has, with their contents; None for what cannot be read.
    """
    unread = [path for path, content in after.items() if content is None or b"\0" in content]
    yield from _of_files(changed, "{} changed: what is built or run with it differs from now on", Risk.NONE, "")
    # A file that cannot be read has not lost its packages.
    yield from _package_statements(sorted({*changed}.difference(unread)), before, after)
    yield from _of_files(unread, "{} cannot be read by this review, and images are built by it", Risk.CAUTION, "")
    if new := _sources(filter(None, after.values())) - _sources(before.values()):
        text = "{} is named in files that images are built from, and in no such file of the base"
        values = (listed(sorted(new), _MAX_FILES),)
        yield LocatedStatement("", Statement(text, values, Risk.CAUTION, "code from elsewhere in images"))


def _package_statements(
    paths: Iterable[PurePosixPath], before: Mapping[PurePosixPath, bytes], after: Mapping[PurePosixPath, bytes | None]
) -> Iterator[LocatedStatement]:
    """Yield the packages that differ in each file, with their versions; one that no file of the base has is a risk."""
    of_base = {path: _packages(path, content) for path, content in before.items()}
    known = {_package_name(package) for packages in of_base.values() for package in packages}
    for path in paths:
        old, new = of_base.get(path, set()), _packages(path, after.get(path) or b"")
        differing = {verb: names for verb, names in (("adds", new - old), ("drops", old - new)) if names}
        if differing:
            verbs = " and ".join(f"{verb} {{}}" for verb in differing)
            unknown = {package for package in new - old if _package_name(package) not in known}
            # Those that are a risk come first, as lists are cut.
            ordered = (sorted(names, key=lambda name: (name not in unknown, name)) for names in differing.values())
            values = (str(path), *(listed(names, _MAX_FILES) for names in ordered))
            if unknown:
                text, headline = f"{{}} {verbs}: code that is new to what is built", "new packages in images"
                yield LocatedStatement("", Statement(text, values, Risk.CAUTION, headline))
            else:
                yield LocatedStatement("", Statement(f"{{}} {verbs}", values))


def _packages(path: PurePosixPath, content: bytes) -> set[str]:
    """Return the packages that a file declares, or those that its commands install."""
    text = content.decode(errors="replace")
    if path.suffix in (".txt", ".in"):  # requirements, or what they name
        return {*_REQUIREMENT.findall(text)}
    if read := _DECLARING.get(path.name.lower()):
        data = None
        with suppress(ValueError, RecursionError, configparser.Error):  # what its readers refuse, too
            data = read(text)
        return {package for package in _declared(data) if re.match(r"[A-Za-z0-9./]", package)}
    commands = (_WORDS.findall(command) for command in _COMMAND_ENDS.split(_CONTINUED.sub(" ", text)))
    return {package for words in commands for package in _installed([word for word in words if word != "RUN"])}


def _sections(text: str) -> dict[str, Any]:
    """Return the sections of an INI file with the lines of each value."""
    parser = configparser.RawConfigParser(strict=False)
    parser.read_string(text)
    return {name: {key: str(value).split("\n") for key, value in each.items()} for name, each in parser.items()}


_DECLARING: Final[Mapping[str, Callable[[str], Any]]] = {
    **dict.fromkeys(("pyproject.toml", "pipfile", "uv.toml"), tomllib.loads),
    **dict.fromkeys(("environment.yml", "environment.yaml"), lambda text: read_text(text, "").data),
    "setup.cfg": _sections,
}
"""Files that declare packages, by their names in lower case, and the function that reads them."""


def _declared(data: Any, *, is_package: bool = False) -> Iterator[str]:
    """Yield the packages of a declaration, each with its version or the address that it comes from."""
    if isinstance(data, list):
        yield from (package for item in data for package in _declared(item, is_package=is_package))
    elif isinstance(data, dict):
        for key, value in data.items():
            if is_package and not isinstance(value, list):
                texts = [str(part) for part in (value.values() if isinstance(value, dict) else [value])]
                yield " ".join([key, *texts])
            else:
                yield from _declared(value, is_package=is_package or bool(_DEPENDENCIES.fullmatch(key.lower())))
    elif is_package and isinstance(data, str):
        yield data.strip()


def _installed(words: Sequence[str]) -> list[str]:
    """Return the packages that a command installs, whatever its package manager."""
    start = next((index for index, word in enumerate(words) if index and word in _INSTALLING), len(words))
    return [word for word in words[start + 1 :] if _PACKAGE.fullmatch(word)]


def _package_name(package: str) -> str:
    """Return a package without its version and its extras, but with the host or the path that it comes from."""
    name = match[0] if (match := _PACKAGE_NAME.match(package)) else ""
    place = package[len(name) :] if "/" in package[len(name) :] else ""
    source = _SOURCE.search(place)
    return f"{name.lower().replace('_', '-')} {source[0] if source else place}".strip()


def _sources(contents: Iterable[bytes]) -> set[str]:
    """Return the hosts and registries in files from which images are built."""
    texts = [_CONTINUED.sub(" ", _COMMENT.sub("", content.decode(errors="replace"))) for content in contents]
    images = {registry_of(image) for text in texts for image in _IMAGE.findall(text) if "/" in image}
    return images.union(source for text in texts for source in _SOURCE.findall(text))


def _of_files(paths: Sequence[PurePosixPath], text: str, risk: Risk, headline: str) -> Iterator[LocatedStatement]:
    if paths:
        yield LocatedStatement("", Statement(text, (listed([*map(str, paths)], _MAX_FILES),), risk, headline))
