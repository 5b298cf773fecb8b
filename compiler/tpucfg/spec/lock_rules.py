"""Check the version of JAX that the trainer's lock file names, if the target needs a newer one.

Compute Engine writes the hosts of a group into their metadata in another form than the Cloud TPU API, which JAX reads
since 0.10.0: https://github.com/jax-ml/jax/blob/main/jax/_src/clusters/cloud_tpu_cluster.py.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path as FilePath
from typing import Final, NamedTuple

from tpucfg.catalog import Catalog
from tpucfg.catalog.target_facts import TARGET_FACTS
from tpucfg.findings import Finding
from tpucfg.fs import is_file, open_regular_file, sorted_glob
from tpucfg.spec.project import Environment, Project
from tpucfg.text_format import listed

_SOURCE: Final = "https://github.com/jax-ml/jax/blob/main/jax/_src/clusters/cloud_tpu_cluster.py"
_FOLDERS: Final = (".", "trainer")
"""The folders beside the spec in which a trainer has its lock file: that of `tpucfg init` is in `trainer`."""
_PATTERNS: Final = ("requirements*.txt", "*.lock")
_MAX_BYTES: Final = 1 << 23
"""More than the longest lock file."""
_PIN: Final = re.compile(
    r"""^(?:jax(?:\[[^]\n]*\])?[ ]*==[ ]*|name[ ]=[ ]"jax"\nversion[ ]=[ ]")
        ([0-9]{1,4})\.([0-9]{1,4})(\S*?)(?=["\s;\\]|$)""",
    re.ASCII | re.MULTILINE | re.VERBOSE,
)
"""A line of requirements, or two of a lock file of uv or poetry."""


class _Pin(NamedTuple):
    """A version of JAX in a file."""

    file: str
    line: int
    version: str
    release: tuple[int, int]


def lock_findings(project: Project, folder: FilePath, catalog: Catalog, target: str | None = None) -> Iterator[Finding]:
    """Yield a warning for each environment whose hosts would not find each other with the JAX of a lock file.

    Args:
        project: The project, whose sizes of several hosts count.
        folder: The folder of the spec.
        catalog: The catalog of TPU sizes.
        target: The target instead of those of the environments.
    """
    if project.broken & {"environments", "target", "sizes"}:
        return
    pins: Sequence[_Pin] | None = None
    for environment in project.environments.values():
        name = target or environment.target
        oldest = TARGET_FACTS[name].oldest_jax
        sizes = [size for size in environment.sizes if (slice_ := catalog.find(size)) and slice_.hosts > 1]
        if oldest is None or not sizes:
            continue
        pins = [*_pins(folder)] if pins is None else pins
        old = [pin for pin in pins if pin.release < oldest]
        yield from (_finding(project, environment, name, sizes, pin) for pin in old[:1])


def _finding(project: Project, environment: Environment, target: str, sizes: Sequence[str], pin: _Pin) -> Finding:
    own = (*environment.path, "target")
    path = own if project.document.node(own) else ("target",)
    return Finding.of(
        "TPU049",
        f"the hosts of {listed(sizes, last=' and ')} on {target} would not find each other with JAX {pin.version}, "
        f"which {pin.file}:{pin.line} names: it cannot read their names from the metadata",
        project.document.value_location(path),
        help=f"raise the version in {pin.file} to 0.10.0 or newer; or pass coordinator_address, num_processes and "
        "process_id to jax.distributed.initialize, and allow TPU049",
        details=(f"see {_SOURCE}",),
    )


def _pins(folder: FilePath) -> Iterator[_Pin]:
    for name in _FOLDERS:
        for pattern in _PATTERNS:
            for path in sorted_glob(folder / name, pattern):
                yield from _pins_in(path, path.relative_to(folder).as_posix())


def _pins_in(path: FilePath, name: str) -> Iterator[_Pin]:
    if not is_file(path):
        return
    try:
        with open_regular_file(path) as file:
            text = file.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return
    for match in _PIN.finditer(text):
        version = f"{match[1]}.{match[2]}{match[3]}"
        yield _Pin(name, text.count("\n", 0, match.start()) + 1, version, (int(match[1]), int(match[2])))
