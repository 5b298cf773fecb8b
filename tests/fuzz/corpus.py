"""What is right, or wrong in one place, to begin with: everything of its kind that the repository holds."""

from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent.parent
BAD: Final = ROOT / "tests" / "bad"
SAMPLES: Final = ROOT / "tests" / "official" / "samples"


def _contents(*paths: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(paths) if path.is_file()]


@cache
def right_specs() -> list[bytes]:
    """The example project and the examples, which have no error."""
    right = (path for path in ROOT.glob("examples/**/tpucfg.yaml") if "mistakes" not in path.parts)
    return _contents(ROOT / "tpucfg.yaml", ROOT / "tests/spec/every_key.yaml", *right)


@cache
def specs() -> list[bytes]:
    """All specs, those with mistakes and those where they are fixed."""
    wrong = [path for name in ("tpucfg.yaml", "tpucfg.json") for path in BAD.glob(f"*/{name}")]
    fixed = [path for path in BAD.glob("*/fixed.yaml") if not list(path.parent.glob("config.*"))]
    return [*right_specs() * 8, *_contents(*wrong, *fixed, ROOT / "examples/mistakes/tpucfg.yaml")]


@cache
def configs() -> list[tuple[bytes, str]]:
    """Configs, each with the target that it is for."""
    wrong = [(path.read_bytes(), path.name.split(".")[1]) for path in sorted(BAD.glob("*/config.*.yaml"))]
    return [*wrong, *((path.read_bytes(), path.parts[-3]) for path in sorted(SAMPLES.glob("*/*/*.yaml")))]


@cache
def stacks() -> list[bytes]:
    """Stack files."""
    return _contents(*ROOT.glob("stacks/Pulumi.*.yaml"), *BAD.glob("*/stacks/Pulumi.*.yaml"))


@cache
def previews() -> list[bytes]:
    """What `pulumi preview --json` printed."""
    return _contents(*(ROOT / "tests" / "review" / "previews").glob("*.json*"))


@cache
def pulumi_projects() -> list[bytes]:
    """Files of the name Pulumi.yaml."""
    return _contents(ROOT / "Pulumi.yaml", *BAD.glob("*/Pulumi.yaml"))
