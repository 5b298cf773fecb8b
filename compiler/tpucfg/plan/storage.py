"""Where the data lies: a bucket of another region is paid for by the byte and waited for at every step."""

from collections.abc import Iterator, Sequence

from tpucfg.findings import Finding
from tpucfg.plan.rung import program_args
from tpucfg.plan.whole import bucket_of
from tpucfg.schemas import dotted, shown
from tpucfg.spec.document import Path
from tpucfg.spec.model import Environment, Project


def outside_findings(project: Project, chosen: Sequence[tuple[Environment, tuple[str, ...]]]) -> Iterator[Finding]:
    """Every gs:// path of the chosen jobs' programs that is written out and lies outside an environment's own bucket.

    Data belongs in a regional bucket in the TPU's region: https://cloud.google.com/tpu/docs/storage-buckets.
    """
    buckets = {f"gs://{bucket_of(project, environment)}" for environment, _ in chosen}
    sizes = tuple(dict.fromkeys(size for _, ladder in chosen for size in ladder))
    for path, text in _texts(project, sizes):
        own = "/".join(text.split("/")[:3])
        if "${" not in own and buckets != {own}:
            yield Finding.of(
                "TPU031",
                f"{dotted(path)} is {shown(text, quoted=False)}, outside ${{bucket}}: its region is not known",
                project.document.value(path),
                help="copy it to ${bucket}, or allow TPU031 with the reason",
            )


def _texts(project: Project, sizes: Sequence[str]) -> Iterator[tuple[Path, str]]:
    args = {arg.path: arg for size in sizes for arg in program_args(project, size)}
    texts = [(path, text) for path, arg in args.items() for text in arg.values]
    texts += [(("trainer", "env", key), value) for key, value in project.trainer.env]
    return ((path, text) for path, text in texts if text and text.startswith("gs://"))
