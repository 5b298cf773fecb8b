"""Pages that are made of something else: which are not what they should be, and the script that fixes them."""

import argparse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

Differing = Iterator[tuple[Path, str]]


def not_as(wanted: Mapping[Path, str]) -> Differing:
    """The pages that are not as they should be, with the text that they should have."""
    for path, text in wanted.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            yield path, text


def keep(description: str, differing: Callable[[], Differing], root: Path, arguments: list[str] | None) -> int:
    """Write the pages that differ below the root, or with --check only name them; return the exit status."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where a page would change")
    check = parser.parse_args(arguments).check
    changed = list(differing())
    for path, text in changed:
        print(f"{'differs' if check else 'wrote'}: {path.relative_to(root)}")
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return int(check and bool(changed))
