"""Measured environments: installed like a user's with `pip install`, without development tools."""

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
_CACHE: Final = ROOT / ".cache" / "bench"


def tpucfg() -> Path:
    """Install this checkout's wheel with its locked dependencies; return the folder of programs."""
    programs = _environment("tpucfg", ROOT / "requirements.txt")
    dist = _CACHE / "dist"
    _run(
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "--clean",
        "--target",
        "wheel",
        "--directory",
        str(dist),
    )
    (wheel,) = dist.glob("*.whl")
    _run(str(programs / "pip"), "install", "--quiet", "--no-deps", "--force-reinstall", str(wheel))
    return programs


def check_jsonschema() -> Path:
    """Install check-jsonschema; return the folder of programs."""
    return _environment("check-jsonschema", ROOT / "benchmarks" / "requirements.txt")


def _environment(name: str, requirements: Path) -> Path:
    programs = _CACHE / name / "bin"
    if not (programs / "pip").exists():
        _run(sys.executable, "-m", "venv", str(_CACHE / name))
    _run(
        str(programs / "pip"),
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "-r",
        str(requirements),
    )
    return programs


def _run(*command: str) -> None:
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
