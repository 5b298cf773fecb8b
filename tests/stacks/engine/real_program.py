"""The stack program itself, run inline by the Automation API, with a spec that a test may change between two runs."""

import runpy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import specs

STACKS = Path(__file__).resolve().parents[3] / "stacks"


@dataclass(slots=True)
class RealProgram:
    """The program; called anew by each operation, it reads the spec anew."""

    folder: Path
    environment: dict[str, Any] = field(default_factory=dict)
    """What the environment of the spec has besides its project and region."""
    top: dict[str, Any] = field(default_factory=dict)
    """What the spec has besides the smallest."""

    @property
    def spec(self) -> Path:
        """Where the spec is."""
        return self.folder / "tpucfg.yaml"

    def __call__(self) -> None:
        """Write the spec, then run stacks/ as the language host does."""
        specs.write(self.folder, specs.spec(self.environment, **self.top))
        runpy.run_path(str(STACKS), run_name="__main__")
