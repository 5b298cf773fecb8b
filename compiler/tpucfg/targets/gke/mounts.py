"""Buckets as folders of the program, by the CSI driver of Cloud Storage FUSE.

Sources: https://cloud.google.com/kubernetes-engine/docs/how-to/cloud-storage-fuse-csi-driver-ephemeral (volumes),
https://cloud.google.com/kubernetes-engine/docs/how-to/cloud-storage-fuse-csi-driver-sidecar (annotations),
https://cloud.google.com/storage/docs/cloud-storage-fuse/mount-bucket (only-dir, implicit-dirs).
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from tpucfg.plan.job import Job
from tpucfg.spec.settings import Mount

FUSE_PREFIX: Final = "gke-gcsfuse"
# GKE gives the driver's container 256 MiB by default, too little for a program that reads with many threads; 0 is none.
_ANNOTATIONS: Final = {
    f"{FUSE_PREFIX}/volumes": "true",
    f"{FUSE_PREFIX}/cpu-limit": "0",
    f"{FUSE_PREFIX}/memory-limit": "0",
    f"{FUSE_PREFIX}/ephemeral-storage-limit": "0",
}
SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - the pod's, not this machine's
_BUCKET: Final = re.compile(r"[a-z0-9${][a-z0-9${}_.-]{1,221}")
"""A bucket's name, or one with placeholders: https://cloud.google.com/storage/docs/buckets#naming."""
_MAX_NAME_LENGTH: Final = 50
"""A volume's name is a DNS label, with 63 characters: https://kubernetes.io/docs/concepts/storage/volumes/."""
_FOLDER: Final = re.compile(r"[A-Za-z0-9${}_.+=@-]+(?:/[A-Za-z0-9${}_.+=@-]+)*")
"""A folder that is one value among mount options, which commas separate."""


def mount_problem(mount: Mount) -> str | None:
    """Return the reason why a pod cannot have a mount, as a clause; None if it can."""
    bucket, _, folder = mount.source.removeprefix("gs://").rstrip("/").partition("/")
    if mount.path == SHARED_MEMORY:
        return f"{SHARED_MEMORY} is the pod's shared memory, and Kubernetes takes each mount point once"
    if not _BUCKET.fullmatch(bucket):
        return f"{bucket} is not the name of a bucket" if bucket else "it names no bucket"
    if folder and (not _FOLDER.fullmatch(folder) or {".", ".."} & {*folder.split("/")}):
        return "its folder is one of several mount options, in which only letters, digits and any of _.+=@-/ are safe"
    return None


def annotations(job: Job) -> dict[str, str]:
    """Return the pod's annotations, by which GKE adds the driver's container."""
    return dict(_ANNOTATIONS) if job.mounts else {}


def volumes(job: Job) -> list[dict[str, Any]]:
    """Return the pod's volumes: shared memory, and one for each mount."""
    shared = {"name": "shm", "emptyDir": {"medium": "Memory"}}
    return [shared, *(_bucket_volume(name, mount) for name, mount in _named(job.mounts))]


def volume_mounts(job: Job) -> list[dict[str, str]]:
    """Return the folders of the container at which the volumes are mounted."""
    mounts = [{"name": name, "mountPath": mount.path} for name, mount in _named(job.mounts)]
    return [{"name": "shm", "mountPath": SHARED_MEMORY}, *mounts]


def _bucket_volume(name: str, mount: Mount) -> dict[str, Any]:
    bucket, _, folder = mount.source.removeprefix("gs://").partition("/")
    # Objects that no tool created a folder for are visible only with implicit-dirs.
    options = ["implicit-dirs", *([f"only-dir={folder}"] if folder else [])]
    attributes = {"bucketName": bucket, "mountOptions": ",".join(options)}
    return {"name": name, "csi": {"driver": "gcsfuse.csi.storage.gke.io", "volumeAttributes": attributes}}


def _named(mounts: Iterable[Mount]) -> Iterator[tuple[str, Mount]]:
    """Yield each mount with the name of its volume, after its path: a further mount does not rename the others."""
    names: set[str] = set()
    for mount in mounts:
        path = re.sub(r"[^a-z0-9]+", "-", mount.path.lower())[:_MAX_NAME_LENGTH]
        name = f"mount{path}".rstrip("-")
        if name in names:  # /a.b and /a/b
            name = f"{name}-{len(names) + 1}"
        names.add(name)
        yield name, mount
