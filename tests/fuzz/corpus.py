"""Seed inputs for mutations: all valid and invalid files of each kind in the repository."""

from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent.parent
BAD: Final = ROOT / "tests" / "bad"
SAMPLES: Final = ROOT / "tests" / "official" / "samples"


def _contents(*paths: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(paths) if path.is_file()]


@cache
def valid_specs() -> list[bytes]:
    """Return the specs of the repository without errors."""
    valid = (path for path in ROOT.glob("examples/**/tpucfg.yaml") if "mistakes" not in path.parts)
    return _contents(ROOT / "tpucfg.yaml", ROOT / "tests/spec/every_key.yaml", *valid)


@cache
def specs() -> list[bytes]:
    """Return all specs, invalid, fixed and valid ones."""
    invalid = [path for name in ("tpucfg.yaml", "tpucfg.json") for path in BAD.glob(f"*/{name}")]
    fixed = [path for path in BAD.glob("*/fixed.yaml") if not list(path.parent.glob("config.*"))]
    return [
        *valid_specs() * 8,
        *_contents(*invalid, *fixed, ROOT / "examples/mistakes/tpucfg.yaml"),
    ]


@cache
def configs() -> list[tuple[bytes, str]]:
    """Return configs with their targets."""
    invalid = [
        (path.read_bytes(), path.name.split(".")[1]) for path in sorted(BAD.glob("*/config.*.yaml"))
    ]
    return [
        *invalid,
        *((path.read_bytes(), path.parts[-3]) for path in sorted(SAMPLES.glob("*/*/*.yaml"))),
    ]


@cache
def stacks() -> list[bytes]:
    """Return the stack files."""
    return _contents(*ROOT.glob("stacks/Pulumi.*.yaml"), *BAD.glob("*/stacks/Pulumi.*.yaml"))


@cache
def previews() -> list[bytes]:
    """Return the recorded output of `pulumi preview --json`."""
    return _contents(*(ROOT / "tests" / "review" / "previews").glob("*.json*"))


@cache
def pulumi_projects() -> list[bytes]:
    """Return the Pulumi.yaml files."""
    return _contents(ROOT / "Pulumi.yaml", *BAD.glob("*/Pulumi.yaml"))
