"""The hand-written configs under `samples/<target>/<kind>/`.

`good` is taken by the official code and by the schema, `bad` is refused by both, and `missed` is what the official code
takes and the schema refuses. A bad sample's first line says what the official refusal must name.
"""

from pathlib import Path

from official import MODULES

FOLDER = Path(__file__).parent / "samples"
EXPECTED = "# refused: "


def of(*kinds: str) -> list[tuple[str, Path]]:
    """Return the target and the path of every sample of these kinds."""
    return [
        (target, path) for target in MODULES for kind in kinds for path in sorted((FOLDER / target / kind).iterdir())
    ]


def name(value: object) -> str:
    """Return a short name of a sample for pytest's report."""
    return "-".join(value.parts[-2:]) if isinstance(value, Path) else str(value)


def expected(path: Path) -> str:
    """Return what the refusal of a bad sample must name."""
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith(EXPECTED), f"{path}: the first line must begin with {EXPECTED!r}"
    return first.removeprefix(EXPECTED)
