"""Print the lines of code of each room of the compiler: without blank lines, comments and docstrings."""

import ast
import io
import subprocess
import tokenize
from collections import defaultdict
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGE: Final = Path("compiler/tpucfg")
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
    """The size of a room."""

    lines: int
    modules: int


def room_sizes() -> dict[str, Size]:
    """Return the size of each room, that is a folder of the package; `root` has the modules in none."""
    listed = subprocess.run(
        ["git", "ls-files", f"{PACKAGE}/*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    rooms: dict[str, list[int]] = defaultdict(list)
    for path in map(Path, listed.splitlines()):
        if (ROOT / path).is_file():
            room, *below = path.relative_to(PACKAGE).parts
            rooms[room if below else "root"].append(
                count_code_lines((ROOT / path).read_text(encoding="utf-8"))
            )
    return {room: Size(sum(counts), len(counts)) for room, counts in sorted(rooms.items())}


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


def main() -> None:
    """Print a line for each room, and the sum."""
    sizes = room_sizes()
    for room, size in [
        *sizes.items(),
        ("compiler", Size(*map(sum, zip(*sizes.values(), strict=True)))),
    ]:
        print(f"{room:10} {size.lines:6,} lines in {size.modules:3} modules")


if __name__ == "__main__":
    main()
