"""What a release has to agree on: its tag, the package's version, the changelog, and where the repository is.

python tools/release.py check TAG    exits 1 and says what differs
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
_HEADING: Final = re.compile(r"^## \[(?P<version>[^\]]+)\](?: - (?P<day>\d{4}-\d\d-\d\d))?$", re.MULTILINE)


def version(root: Path = ROOT) -> str:
    """The package's version."""
    found = re.search(
        r'^__version__(?:: [^=]+)? = "([^"]+)"$', (root / VERSION).read_text(encoding="utf-8"), re.MULTILINE
    )
    if found is None:
        raise SystemExit(f"{VERSION}: no __version__")
    return found[1]


def sections(root: Path = ROOT) -> dict[str, tuple[str | None, str]]:
    """The changelog's sections by version: the day, and the text below the heading."""
    text = (root / CHANGELOG).read_text(encoding="utf-8")
    headings = [*_HEADING.finditer(text)]
    ends = [*(heading.start() for heading in headings[1:]), len(text)]
    return {
        heading["version"]: (heading["day"], text[heading.end() : end].strip())
        for heading, end in zip(headings, ends, strict=True)
    }


def differences(tag: str, root: Path = ROOT) -> Iterator[str]:
    """What has to be fixed before this tag is a release."""
    wanted, found = tag.removeprefix("v"), sections(root)
    if not tag.startswith("v"):
        yield f"the tag is {tag}: it is v and the version, v{version(root)}"
    if version(root) != wanted:
        yield f"{VERSION}: the version is {version(root)}, and the tag says {wanted}"
    day, text = found.get(wanted, (None, ""))
    if wanted not in found:
        yield f"{CHANGELOG}: no section [{wanted}]: rename [{UNRELEASED}], with the day behind it"
    elif day is None:
        yield f"{CHANGELOG}: the section [{wanted}] has no day: ## [{wanted}] - 2026-01-31"
    elif not text:
        yield f"{CHANGELOG}: the section [{wanted}] is empty"
    if next(iter(found), None) not in {wanted, UNRELEASED}:
        yield f"{CHANGELOG}: [{wanted}] is not the first section"
    project = tomllib.loads((root / PROJECT).read_text(encoding="utf-8"))["project"]
    if not project.get("urls", {}).get("Repository", "").startswith("https://"):
        yield f'{PROJECT}: the registry\'s page would lead nowhere: [project.urls] Repository = "https://..."'


def main(arguments: list[str]) -> int:
    """Check or print; return the exit status."""
    if len(arguments) != 2 or arguments[0] not in {"check", "notes"}:  # noqa: PLR2004 - a command and a tag
        print("usage: release.py check|notes TAG", file=sys.stderr)
        return 2
    command, tag = arguments
    if command == "notes":
        print(sections()[tag.removeprefix("v")][1])
        return 0
    found = [*differences(tag)]
    print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
