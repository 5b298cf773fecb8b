"""Writing and checking of pages that are generated, shared by the scripts that generate them."""

import argparse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

OutdatedPages = Iterator[tuple[Path, str]]


def outdated_pages(expected: Mapping[Path, str]) -> OutdatedPages:
    """Yield each page whose file differs from its expected text, with that text."""
    for path, text in expected.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            yield path, text


def write_or_check(
    description: str,
    differing: Callable[[], OutdatedPages],
    root: Path,
    arguments: list[str] | None,
) -> int:
    """Write the outdated pages, or only name them with --check; return the exit status."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if a page would change"
    )
    check = parser.parse_args(arguments).check
    changed = list(differing())
    for path, text in changed:
        print(f"{'differs' if check else 'wrote'}: {path.relative_to(root)}")
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return int(check and bool(changed))
