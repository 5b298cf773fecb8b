"""Run the tests that read what has changed since the branch left main, or in main's last commit, for `make quick`.

    python tools/changed_tests.py pytest -n 4    runs this command with the tests

Tests of golden and generated files run always: they see any change of what the commands print. Of the others, the
tests of a changed module come first, then those that import it or have its file's name, directly or by a module of the
tests, then those of its folder, until the limit of files is reached. Slow tests run if they are the telling ones of a
chosen file, or have the name of a changed file as their id: that of a golden comment, or of a page.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
TESTS: Final = ROOT / "tests"
PACKAGE: Final = PurePosixPath("compiler/tpucfg")
MAX_FILES: Final = 40
"""Files of tests in one run, besides those that run always: any forty end within a minute."""
MAX_READERS: Final = 20
"""Modules of tests with the name of a file: if more of them have it, it is the name of other files too."""
MAX_IDS: Final = 6
"""Slow tests by their ids: each takes some seconds."""
MARKS: Final = "not slow or telling and (shell or programs or documents)"
"""Tests of the chosen files; those of other real parts take longer than a minute."""
_NO_TESTS: Final = 5
"""pytest's status if no test has one of the ids."""
_GENERATED: Final = re.compile(
    r"goldens: Goldens|^import (?:\w+_pages|\w+_table|\w+_blocks|reference|api_schemas)$",
    re.MULTILINE,
)
"""Tests that compare with golden files, or with what a program of tools/ generates."""
_MIRRORS: Final[Mapping[str, tuple[str, ...]]] = {
    ".github": ("workflows",),
    "stack": ("stacks",),
    "templates": ("render", "targets"),
}
"""Folders of tests whose names differ from those of what they test."""


def main() -> int:
    """Run the command with the tests that changed files need."""
    changed = changed_files()
    chosen = needed_tests(changed)
    status = subprocess.run([*sys.argv[1:], "-m", MARKS, *chosen], cwd=ROOT, check=False).returncode
    ids = slow_ids(changed)
    if status or not ids:
        return status
    command = [*sys.argv[1:], "-m", "slow", "-k", " or ".join(ids), *chosen]
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    return 0 if status == _NO_TESTS else status


def changed_files() -> list[str]:
    """Return the paths that differ from main's commit that the branch started from, and the untracked ones."""
    base = _git("merge-base", "HEAD", "main").strip()
    if base == _git("rev-parse", "HEAD").strip():
        base = "HEAD~1"
    return [
        *_git("diff", "--name-only", base).splitlines(),
        *_git("ls-files", "-o", "--exclude-standard").splitlines(),
    ]


def needed_tests(changed: Iterable[str]) -> list[str]:
    """Return the test files that run for changed files: the closest to the changes, and those that run always."""
    paths = [PurePosixPath(name) for name in changed]
    closest = [
        *(path for each in paths for path in _own_tests(each)),
        *(path for each in paths for path in _readers(each)),
        *(path for each in paths for path in _tests_of_folder(each)),
    ]
    always = _always()
    others = [path for path in dict.fromkeys(closest) if path not in always]
    return [str(path.relative_to(ROOT)) for path in [*others[:MAX_FILES], *always]]


def slow_ids(changed: Iterable[str]) -> list[str]:
    """Return what is in the ids of the slow tests of golden files and pages."""
    paths = map(PurePosixPath, changed)
    ids = [
        f"[{path.stem if path.parts[0] == 'tests' else path}]"
        for path in paths
        if path.suffix in {".md", ".json"}
    ]
    return ids[:MAX_IDS]


@cache
def _modules() -> dict[Path, str]:
    """Return the text of each module of the tests."""
    return {path: path.read_text(encoding="utf-8") for path in sorted(TESTS.rglob("*.py"))}


@cache
def _always() -> list[Path]:
    generated = [path for path, text in _modules().items() if _GENERATED.search(text)]
    return [*filter(_is_test, generated), *_test_files(TESTS / "project")]


def _own_tests(path: PurePosixPath) -> Iterator[Path]:
    """Yield a changed test file, or the test file of a changed module."""
    folder = path.parent
    if folder.is_relative_to(PACKAGE):
        folder = folder.relative_to(PACKAGE)
    for test in (ROOT / path, TESTS / folder / f"test_{path.stem}.py"):
        if _is_test(test) and test.is_file():
            yield test


def _readers(path: PurePosixPath) -> Iterator[Path]:
    """Yield the test files that import a module or have the name of a file, directly or by other modules."""
    seen: set[Path] = {ROOT / path}
    waiting = [path]
    while waiting:
        for module in [*_direct_readers(waiting.pop(0))]:
            if module not in seen:
                seen.add(module)
                if _is_test(module):
                    yield module
                else:
                    waiting.append(PurePosixPath(module.relative_to(ROOT)))


def _direct_readers(path: PurePosixPath) -> list[Path]:
    if path.suffix == ".py":
        names = _module_names(path)
        return [
            module
            for module, text in _modules().items()
            if any(name.rpartition(".")[2] in text for name in names) and names & _imports(module)
        ]
    name = re.compile(rf"""["'/]{re.escape(path.name)}["'/]""")
    readers = [module for module, text in _modules().items() if name.search(text)]
    return readers if len(readers) <= MAX_READERS else []


def _module_names(path: PurePosixPath) -> set[str]:
    """Return the names by which tests import a module: also its package's, outside of the compiler."""
    if path.is_relative_to(PACKAGE / "fit" / "worker"):
        return {path.stem}
    if path.is_relative_to(PACKAGE):
        parts = path.with_suffix("").relative_to(PACKAGE.parent).parts
        return {".".join(parts).removesuffix(".__init__")}
    return {path.stem, path.parent.name}


@cache
def _imports(module: Path) -> set[str]:
    """Return what a module imports: modules, and names in them, which may be modules too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(_modules()[module])):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def _tests_of_folder(path: PurePosixPath) -> Iterator[Path]:
    """Yield the test files of the folder that mirrors that of a path."""
    *folders, _ = path.relative_to(PACKAGE).parts if path.is_relative_to(PACKAGE) else path.parts
    if folders[:1] == ["tests"]:
        del folders[0]
    if folders:
        first, *_ = folders
        for name in (*folders[1:2], *_MIRRORS.get(first, (first,))):
            yield from _test_files(TESTS / name)


def _test_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("test_*.py") if path.is_file())


def _is_test(path: Path) -> bool:
    return path.name.startswith("test_") and path.suffix == ".py"


def _git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout


if __name__ == "__main__":
    sys.exit(main())
