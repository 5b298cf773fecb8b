"""Where the data lies: a bucket of another region is paid for by the byte and waited for at every step."""

from collections.abc import Iterator, Sequence

from tpucfg.findings import Finding
from tpucfg.plan.rung import program_args
from tpucfg.plan.whole import bucket_of
from tpucfg.schemas import dotted, shown
from tpucfg.spec.document import Path
from tpucfg.spec.model import Environment, Project


def outside_findings(project: Project, environments: Sequence[Environment]) -> Iterator[Finding]:
    """Every gs:// path of the program that is written out and lies outside an environment's own bucket.

    Data belongs in a regional bucket in the TPU's region: https://cloud.google.com/tpu/docs/storage-buckets.
    """
    buckets = {f"gs://{bucket_of(project, environment)}" for environment in environments}
    for path, text in _texts(project):
        if text.startswith("gs://") and "${" not in text.split("/")[2]:
            own = "/".join(text.split("/")[:3])
            if buckets != {own}:
                yield Finding.of(
                    "TPU031",
                    f"{dotted(path)} is {shown(text, quoted=False)}, outside ${{bucket}}: its region is not known",
                    project.document.value(path),
                    help="copy it to ${bucket}, or allow TPU031 with the reason",
                )


def _texts(project: Project) -> Iterator[tuple[Path, str]]:
    for size in ("", *project.overrides):
        for arg in program_args(project, size):
            for value in arg.values:
                yield arg.path, value or ""
    for key, value in project.trainer.env:
        yield ("trainer", "env", key), value
