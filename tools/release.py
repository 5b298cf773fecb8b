"""Check that a release is consistent: tag, package version, changelog and repository URL.

python tools/release.py check TAG    exits 1 and prints the differences
python tools/release.py notes TAG    prints the changelog's section of that version
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
CHANGELOG: Final = "CHANGELOG.md"
VERSION: Final = "compiler/tpucfg/__init__.py"
PROJECT: Final = "pyproject.toml"
UNRELEASED: Final = "Unreleased"
_HEADING: Final = re.compile(
    r"^## \[(?P<version>[^\]]+)\](?: - (?P<day>\d{4}-\d\d-\d\d))?$", re.MULTILINE
)


def version(root: Path = ROOT) -> str:
    """Return the package's version."""
    match = re.search(
        r'^__version__(?:: [^=]+)? = "([^"]+)"$',
        (root / VERSION).read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    if match is None:
        raise SystemExit(f"{VERSION}: no __version__")
    return match[1]


def sections(root: Path = ROOT) -> dict[str, tuple[str | None, str]]:
    """Return the changelog's sections by version: the day, and the text below the heading."""
    text = (root / CHANGELOG).read_text(encoding="utf-8")
    headings = [*_HEADING.finditer(text)]
    ends = [*(heading.start() for heading in headings[1:]), len(text)]
    return {
        heading["version"]: (heading["day"], text[heading.end() : end].strip())
        for heading, end in zip(headings, ends, strict=True)
    }


def differences(tag: str, root: Path = ROOT) -> Iterator[str]:
    """Yield a line for each problem to fix before this tag can be released."""
    tagged, changelog = tag.removeprefix("v"), sections(root)
    if not tag.startswith("v"):
        yield f"the tag is {tag}, but has to be v and the version: v{version(root)}"
    if version(root) != tagged:
        yield f"{VERSION}: the version is {version(root)}, but the tag is v{tagged}"
    day, text = changelog.get(tagged, (None, ""))
    if tagged not in changelog:
        yield f"{CHANGELOG}: no section [{tagged}]: rename [{UNRELEASED}] and add the day"
    elif day is None:
        yield f"{CHANGELOG}: the section [{tagged}] has no day: ## [{tagged}] - 2026-01-31"
    elif not text:
        yield f"{CHANGELOG}: the section [{tagged}] is empty"
    if next(iter(changelog), None) not in {tagged, UNRELEASED}:
        yield f"{CHANGELOG}: [{tagged}] is not the first section"
    project = tomllib.loads((root / PROJECT).read_text(encoding="utf-8"))["project"]
    if not project.get("urls", {}).get("Repository", "").startswith("https://"):
        yield f'{PROJECT}: the registry\'s page would have no link to the repository: [project.urls] Repository = "https://..."'


def main(arguments: list[str]) -> int:
    """Run the command; return the exit status."""
    if len(arguments) != 2 or arguments[0] not in {"check", "notes"}:  # noqa: PLR2004 - a command and a tag
        print("usage: release.py check|notes TAG", file=sys.stderr)
        return 2
    command, tag = arguments
    if command == "notes":
        print(sections()[tag.removeprefix("v")][1])
        return 0
    problems = [*differences(tag)]
    print(*problems, sep="\n", end="\n" if problems else "", file=sys.stderr)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
