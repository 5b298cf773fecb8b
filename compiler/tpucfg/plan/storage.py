"""Where the data lies: a bucket of another region is paid for by the byte and waited for at every step."""

from collections.abc import Iterator, Sequence
from typing import Final

from tpucfg.findings import Finding
from tpucfg.plan.rung import program_args
from tpucfg.plan.whole import bucket_of
from tpucfg.spec.document import Path
from tpucfg.spec.model import Environment, Project
from tpucfg.wording import dotted, shown

BUCKET_URL: Final = "https://cloud.google.com/tpu/docs/storage-buckets"


def outside_findings(project: Project, chosen: Sequence[tuple[Environment, tuple[str, ...]]]) -> Iterator[Finding]:
    """Every gs:// path of the chosen jobs' programs that is written out and lies outside an environment's own bucket.

    Data belongs in a regional bucket in the TPU's region: BUCKET_URL.
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
                help=f"copy it and write {shown('${bucket}' + text[len(own) :], quoted=False)}, or allow TPU031",
                details=(f"data belongs in a bucket in the TPU's region: {BUCKET_URL}",),
            )


def _texts(project: Project, sizes: Sequence[str]) -> Iterator[tuple[Path, str]]:
    args = {arg.path: arg for size in sizes for arg in program_args(project, size)}
    texts = [
        (_place(project, path, index), text) for path, arg in args.items() for index, text in enumerate(arg.values)
    ]
    texts += [(("trainer", "env", key), value) for key, value in project.trainer.env]
    return ((path, text) for path, text in texts if text and text.startswith("gs://"))


def _place(project: Project, path: Path, index: int) -> Path:
    node = project.document.node(path)
    return (*path, index) if node is not None and isinstance(node.value, list) else path
