"""Print the tests that mirror what has changed since the branch left main, or in main's last commit, for `make quick`.

A test file that mirrors a changed module comes first, then the folders that mirror the changed folders, until the
limit of files is reached.
"""

import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
TESTS: Final = Path("tests")
MAX_FILES: Final = 40
"""Files of tests in one run: those of any forty end within a minute."""
_MIRRORS: Final[Mapping[str, tuple[str, ...]]] = {
    "benchmarks": ("tests/benchmarks",),
    "docs": ("tests/docs/test_markdown.py", "tests/findings/test_pages.py"),
    "examples": ("tests/examples", "tests/frozen"),
    "schema": ("tests/schema", "tests/spec/test_schema.py"),
    "stacks": ("tests/stacks",),
    "templates": ("tests/render", "tests/targets"),
    "tools": ("tests/tools",),
    "tpucfg.yaml": ("tests/frozen",),
}
"""Tests of files outside the compiler, by their first folder."""
_OF_PROJECT: Final = ("tests/project",)
_OF_COMPILER: Final = ("tests/frozen", "tests/test_bad_specs.py")
"""Tests that any change of the compiler could break: all findings, and the bytes of all configs."""


def main() -> None:
    """Print the paths of the tests, in one line."""
    print(*mirrored_tests(changed_files()))


def changed_files() -> list[str]:
    """Return the paths that differ from main's commit that the branch started from, and the untracked ones."""
    base = _git("merge-base", "HEAD", "main").strip()
    if base == _git("rev-parse", "HEAD").strip():
        base = "HEAD~1"
    return [
        *_git("diff", "--name-only", base).splitlines(),
        *_git("ls-files", "-o", "--exclude-standard").splitlines(),
    ]


def mirrored_tests(changed: Iterable[str]) -> list[str]:
    """Return the existing tests for changed paths, the closest first, and at least one."""
    paths = [Path(name) for name in changed]
    candidates = [
        *(_file(path) for path in paths),
        *(folder for path in paths for folder in _folders(path)),
    ]
    chosen: dict[Path, None] = {}
    remaining = MAX_FILES
    for candidate in map(Path, dict.fromkeys(candidates)):
        if (
            candidate == TESTS
            or not (ROOT / candidate).exists()
            or any(path in candidate.parents for path in chosen)
        ):
            continue
        count = len([*(ROOT / candidate).rglob("test_*.py")]) or 1
        if count <= remaining:
            remaining -= count
            chosen[candidate] = None
    return [path.as_posix() for path in chosen] or [*_OF_PROJECT]


def _file(path: Path) -> str:
    """Return the test file of a module, or the test file itself."""
    if path.parts[:2] == ("compiler", "tpucfg"):
        return str(TESTS.joinpath(*path.parts[2:-1], f"test_{path.name}"))
    return (
        str(path)
        if path.name.startswith("test_")
        else str(TESTS / path.parent / f"test_{path.name}")
    )


def _folders(path: Path) -> Iterator[str]:
    """Yield the tests that mirror the folder of a path."""
    first, *rest = path.parts
    if path.parts[:2] == ("compiler", "tpucfg"):
        yield from _OF_COMPILER
        yield str(TESTS.joinpath(*path.parent.parts[2:3]))
    elif path.parts[:2] == ("tests", "bad"):
        yield from _OF_COMPILER
    elif first == "tests":
        yield str(TESTS.joinpath(*rest[:1]) if len(rest) > 1 else TESTS)
    else:
        yield from _MIRRORS.get(first, _OF_PROJECT)


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


if __name__ == "__main__":
    main()
