"""Hand-written configs under `samples/<target>/<kind>/`.

Official code and schema accept the `good` ones and reject the `bad` ones; the `missed` ones are accepted by the
official code but rejected by the schema. A bad sample's first line is a text that the official error must contain.
"""

from pathlib import Path

from official import MODULES

FOLDER = Path(__file__).parent / "samples"
EXPECTED = "# refused: "


def of_kinds(*kinds: str) -> list[tuple[str, Path]]:
    """Return target and path of every sample of these kinds."""
    return [
        (target, path)
        for target in MODULES
        for kind in kinds
        for path in sorted((FOLDER / target / kind).iterdir())
    ]


def name(value: object) -> str:
    """Return a short name of a sample for pytest's report."""
    return "-".join(value.parts[-2:]) if isinstance(value, Path) else str(value)


def expected(path: Path) -> str:
    """Return the text that the official error of a bad sample must contain."""
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith(EXPECTED), f"{path}: the first line must begin with {EXPECTED!r}"
    return first.removeprefix(EXPECTED)
