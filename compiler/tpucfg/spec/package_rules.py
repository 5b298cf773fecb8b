"""Rules about files beside the spec: the trainer's local package, and the JAX that its lock files name."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tpucfg.catalog import TARGET_FACTS, Catalog
from tpucfg.catalog.target_facts import OldestJax
from tpucfg.findings import Finding
from tpucfg.fs import is_directory, is_file, open_regular_file, sorted_glob
from tpucfg.named_tuple import NamedTuple
from tpucfg.spec.project import Environment, Project
from tpucfg.spec.sections import compares
from tpucfg.text_format import dotted, listed
from tpucfg.yamldoc import KeyPath

_BUILD_FILES: Final = ("setup.py", "pyproject.toml")
_FOLDERS: Final = (".", "trainer")
"""The folders that may have the trainer's lock file; `tpucfg init` writes it to `trainer`."""
_PATTERNS: Final = ("requirements*.txt", "*.lock", "pylock.toml", "pylock.*.toml")
"""Names of lock files; https://peps.python.org/pep-0751/#file-name defines the last two."""
_MAX_BYTES: Final = 1 << 23
"""More than the longest lock file."""
_PIN: Final = re.compile(
    r"""^(?:[ \t]{0,9}jax[ \t]{0,9}(?:\[[^]\n]*\])?[ \t]{0,9}\(?[ \t]{0,9}={2,3}[ \t]{0,9}
        |name[ \t]{0,9}=[ \t]{0,9}(["'])jax\1[ \t]{0,9}\r?\nversion[ \t]{0,9}=[ \t]{0,9}["'])
        (?P<version>v?(?P<major>[0-9]{1,4})\.(?P<minor>[0-9]{1,4})(?:\.(?P<patch>[0-9]{1,4}))?[^\s"',;)\\]*)""",
    re.ASCII | re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
"""A line of requirements, or two of a lock file of uv, poetry or pip, with any line ends.

Requirements: https://packaging.python.org/en/latest/specifications/dependency-specifiers/ (names in any case, spaces
around extras and operators) and https://packaging.python.org/en/latest/specifications/version-specifiers/ (`===`).
"""


@compares("trainer", "environments", "target", "sizes", "overrides")
def package_findings(project: Project, folder: Path) -> Iterator[Finding]:
    """Yield a finding for a local package that is missing, or that has no build file where gcloud looks for it.

    gcloud builds a package in its parent folder, with the setup.py there or, without one, with a generated setup.py
    without requirements: https://cloud.google.com/sdk/gcloud/reference/ai-platform/jobs/submit/training.
    """
    packages = {
        settings.source(("trainer", "package")): settings.trainer.package
        for (environment, size), settings in project.settings.items()
        if size and TARGET_FACTS[project.environments[environment].target].builds_packages
    }
    for path, package in packages.items():
        if package is not None and not package.startswith("gs://") and "${" not in package:
            yield from _local_package(project, path, package, folder)


def _local_package(
    project: Project, path: KeyPath, package: str, folder: Path
) -> Iterator[Finding]:
    # normpath, because Path does not resolve `..`: it would return `trainer` as the parent of `trainer/..`.
    package_folder = Path(os.path.normpath(folder.absolute() / package))
    if not is_directory(package_folder):
        message = f"{dotted(path)} is {package}, and there is no such folder beside the spec"
        hint = f"create {package}, or name a package that is built and in Cloud Storage: gs://…"
        yield project.document.finding("TPU053", message, path, help=hint)
    elif not _build_file(package_folder.parent):
        own = _build_file(package_folder)
        hint = f"move {own} up, beside {package}" if own else f"write a setup.py beside {package}"
        message = f"gcloud finds no {' or '.join(_BUILD_FILES)} beside {package}, and builds it without requirements"
        yield project.document.finding("TPU053", message, path, help=hint)


def _build_file(folder: Path) -> str | None:
    return next((name for name in _BUILD_FILES if is_file(folder / name)), None)


class _JaxPin(NamedTuple):
    """A version of JAX in a file."""

    file: str
    """The file's path below the folder of the spec."""
    line: int
    version: str
    release: tuple[int, int, int]


@compares("environments", "target", "sizes")
def jax_findings(
    project: Project, catalog: Catalog, folder: Path, target: str | None = None
) -> Iterator[Finding]:
    """Yield a warning for each environment whose hosts would not find each other with the JAX of a lock file.

    Args:
        project: The project, whose sizes of several hosts count.
        catalog: The catalog of TPU sizes.
        folder: The spec's folder.
        target: A target that replaces the one of every environment.
    """
    pins = tuple(_jax_pins(folder))
    for environment in project.environments.values():
        name = target or environment.target
        oldest = TARGET_FACTS[name].oldest_jax
        sizes = [
            size
            for size in environment.sizes
            if (slice_ := catalog.find(size)) and slice_.hosts > 1
        ]
        if oldest and sizes:
            # The first of several old versions is reported.
            old = [pin for pin in pins if pin.release < oldest.release]
            yield from (_old_jax(project, environment, name, sizes, pin, oldest) for pin in old[:1])


def _old_jax(
    project: Project,
    environment: Environment,
    target: str,
    sizes: Sequence[str],
    pin: _JaxPin,
    oldest: OldestJax,
) -> Finding:
    own = (*environment.path, "target")
    path = own if project.document.node(own) else ("target",)
    message = (
        f"the hosts of {listed(sizes, last=' and ')} on {target} would not find each other with JAX {pin.version}, "
        f"which {pin.file}:{pin.line} names: it cannot read their names from the metadata"
    )
    hint = (
        f"raise the version in {pin.file} to {oldest.text} or newer; or pass coordinator_address, num_processes "
        "and process_id to jax.distributed.initialize, and allow TPU049"
    )
    return project.document.finding(
        "TPU049", message, path, help=hint, details=(f"see {oldest.source}",)
    )


def _jax_pins(folder: Path) -> Iterator[_JaxPin]:
    """Yield the versions of JAX in the lock files of a spec's folder; a file that cannot be read has none."""
    for name in _FOLDERS:
        for pattern in _PATTERNS:
            for path in sorted_glob(folder / name, pattern):
                yield from _pins_in(path, path.relative_to(folder).as_posix())


def _pins_in(path: Path, name: str) -> Iterator[_JaxPin]:
    if not is_file(path):
        return
    try:
        with open_regular_file(path) as file:
            text = file.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return
    for match in _PIN.finditer(text):
        release = int(match["major"]), int(match["minor"]), int(match["patch"] or 0)
        yield _JaxPin(name, text.count("\n", 0, match.start()) + 1, match["version"], release)
