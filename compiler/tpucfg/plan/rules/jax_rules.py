"""Rules about the version of JAX that the trainer's lock file names, if the target needs a newer one."""

from collections.abc import Iterator, Sequence

from tpucfg.catalog import Catalog
from tpucfg.catalog.target_facts import TARGET_FACTS, OldestJax
from tpucfg.findings import Finding
from tpucfg.spec.lock_files import JaxPin
from tpucfg.spec.project import Environment, Project
from tpucfg.text_format import listed


def jax_findings(
    project: Project, catalog: Catalog, pins: Sequence[JaxPin], target: str | None = None
) -> Iterator[Finding]:
    """Yield a warning for each environment whose hosts would not find each other with the JAX of a lock file.

    Args:
        project: The project, whose sizes of several hosts count.
        catalog: The catalog of TPU sizes.
        pins: The versions of JAX in lock files, in order; the first that is too old is reported.
        target: The target instead of those of the environments.
    """
    if project.broken & {"environments", "target", "sizes"}:
        return
    for environment in project.environments.values():
        name = target or environment.target
        oldest = TARGET_FACTS[name].oldest_jax
        sizes = [size for size in environment.sizes if (slice_ := catalog.find(size)) and slice_.hosts > 1]
        if oldest and sizes:
            old = [pin for pin in pins if pin.release < oldest.release]
            yield from (_finding(project, environment, name, sizes, pin, oldest) for pin in old[:1])


def _finding(
    project: Project, environment: Environment, target: str, sizes: Sequence[str], pin: JaxPin, oldest: OldestJax
) -> Finding:
    own = (*environment.path, "target")
    path = own if project.document.node(own) else ("target",)
    return Finding.of(
        "TPU049",
        f"the hosts of {listed(sizes, last=' and ')} on {target} would not find each other with JAX {pin.version}, "
        f"which {pin.file}:{pin.line} names: it cannot read their names from the metadata",
        project.document.value_location(path),
        help=f"raise the version in {pin.file} to {oldest.text} or newer; or pass coordinator_address, num_processes "
        "and process_id to jax.distributed.initialize, and allow TPU049",
        details=(f"see {oldest.source}",),
    )
