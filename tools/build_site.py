"""Build the documentation's site into site/, in strict mode, and check its links.

Zensical keeps its cache in `.cache` beside the settings, and empties that folder before a clean build, although other
tools use it too. The build therefore runs in a temporary folder.

    python tools/build_site.py    exits 1 and prints the errors
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import check_site
import copy_buttons

ROOT: Final = Path(__file__).resolve().parent.parent
SITE: Final = "site"
INPUTS: Final = ("mkdocs.yml", "CHANGELOG.md")
"""Files that the build reads, beside docs/."""


def build(location: Path) -> Path:
    """Build the site in an empty folder and return its folder; zensical's output goes to stderr.

    Raises:
        subprocess.CalledProcessError: Zensical found an error in a page.
    """
    shutil.copytree(ROOT / "docs", location / "docs")
    for name in INPUTS:
        shutil.copy(ROOT / name, location)
    command = [str(Path(sys.executable).parent / "zensical"), "build", "--strict"]
    subprocess.run(command, cwd=location, stdout=sys.stderr.fileno(), check=True)
    copy_buttons.add_commands(location / SITE)
    return location / SITE


def main() -> int:
    """Build and check the site, and move it to site/; return the exit status."""
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
