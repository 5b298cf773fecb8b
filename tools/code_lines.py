"""Print lines of code and syntax nodes of each room of the compiler, and of the compiler, the stacks and the tests.

Lines are without blank lines, comments and docstrings. Many nodes a line are dense code.
"""

import ast
import io
import subprocess
import tokenize
from collections import defaultdict
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGE: Final = Path("compiler/tpucfg")
OTHERS: Final = ("stacks", "tests")
_SKIPPED: Final = frozenset(
    (
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    )
)


class Size(NamedTuple):
    """The size of one module or of several."""

    lines: int
    nodes: int


def main() -> None:
    """Print a line for each room, and for each sum."""
    rooms: dict[str, list[Size]] = defaultdict(list)
    for path in _modules(PACKAGE.as_posix()):
        room, *below = path.relative_to(PACKAGE).parts
        rooms[room if below else "root"].append(_size(path))
    everything = [size for sizes in rooms.values() for size in sizes]
    totals = {folder: [*map(_size, _modules(folder))] for folder in OTHERS}
    for name, sizes in [*sorted(rooms.items()), ("compiler", everything), *totals.items()]:
        lines = sum(size.lines for size in sizes)
        nodes = sum(size.nodes for size in sizes)
        print(
            f"{name:10} {lines:6,} lines {nodes:8,} nodes {nodes / lines:5.1f} a line"
            f" in {len(sizes):3} modules"
        )


def count_code_lines(text: str) -> int:
    """Return the number of lines with code; a string that is a statement of its own is documentation."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _SKIPPED:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def _modules(folder: str) -> list[Path]:
    """Return the modules of a folder that git tracks."""
    listed = subprocess.run(
        ["git", "ls-files", f"{folder}/*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    return [path for path in map(Path, listed.splitlines()) if (ROOT / path).is_file()]


def _size(path: Path) -> Size:
    text = (ROOT / path).read_text(encoding="utf-8")
    return Size(count_code_lines(text), sum(1 for _ in ast.walk(ast.parse(text))))


if __name__ == "__main__":
    main()
