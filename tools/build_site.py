"""Build the documentation's site into site/, strictly, and look for what leads nowhere in it.

Zensical keeps its cache in `.cache` beside the settings, and empties that folder, whosever it is, before a clean
build. So it builds in a folder of its own.

    python tools/build_site.py    exits 1 and says what is wrong
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import check_site
import site_copies

ROOT: Final = Path(__file__).resolve().parent.parent
SITE: Final = "site"
NEEDED: Final = ("mkdocs.yml", "CHANGELOG.md")
"""Beside docs/."""


def build(location: Path) -> Path:
    """The site, built in an empty folder; what zensical says goes to the standard error.

    Raises:
        subprocess.CalledProcessError: A page has a mistake that zensical sees.
    """
    shutil.copytree(ROOT / "docs", location / "docs")
    for name in NEEDED:
        shutil.copy(ROOT / name, location)
    command = [str(Path(sys.executable).parent / "zensical"), "build", "--strict"]
    subprocess.run(command, cwd=location, stdout=sys.stderr.fileno(), check=True)
    site_copies.mark(location / SITE)
    return location / SITE


def main() -> int:
    """Build, check and put it in its place; return the exit status."""
    with tempfile.TemporaryDirectory(prefix="tpucfg-") as folder:
        try:
            built = build(Path(folder))
        except subprocess.CalledProcessError:
            return 1
        if check_site.main(built):
            return 1
        shutil.rmtree(ROOT / SITE, ignore_errors=True)
        shutil.copytree(built, ROOT / SITE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
