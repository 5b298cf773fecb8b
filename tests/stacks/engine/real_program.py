"""The stack program, run inline by the Automation API, with a spec that a test may change between two runs."""

import runpy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import specs

STACKS = Path(__file__).resolve().parents[3] / "stacks"


@dataclass(slots=True)
class RealProgram:
    """The stack program; each operation calls it again, and it reads the spec again."""

    folder: Path
    environment: dict[str, Any] = field(default_factory=dict)
    """Additional keys of the spec's environment."""
    top: dict[str, Any] = field(default_factory=dict)
    """Top-level keys that replace those of the minimal spec."""

    @property
    def spec(self) -> Path:
        """Path of the spec."""
        return self.folder / "tpucfg.yaml"

    def __call__(self) -> None:
        """Write the spec, then run stacks/ as the language host does."""
        specs.write(self.folder, specs.spec(self.environment, **self.top))
        runpy.run_path(str(STACKS), run_name="__main__")
