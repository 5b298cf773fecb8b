"""Files in a folder or in a bucket: a path, or a URL like `gs://bucket/path`."""

import os
from pathlib import Path

import fsspec.config
from etils import epath

# gcsfs would remember which files there are, and so never see those that another host writes.
fsspec.config.conf["gcs"] = {"use_listings_cache": False}
# Otherwise, it asks for properties of the bucket, for which access to its objects is not enough:
# https://cloud.google.com/storage/docs/access-control/iam-json.
os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")


def names(folder: str) -> list[str]:
    """Return the names in the folder; an empty list if it does not exist."""
    try:
        return [path.name for path in epath.Path(folder).iterdir()]
    except FileNotFoundError:
        return []


def read(path: str) -> bytes:
    """Return the content of a file."""
    return bytes(epath.Path(path).read_bytes())


def write(path: str, data: bytes) -> None:
    """Write a file, and the folder that it is in."""
    file = epath.Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


def remove(path: str) -> None:
    """Remove a file, or a folder with all its files."""
    target = epath.Path(path)
    if target.is_dir():
        target.rmtree()
    else:
        target.unlink()


def upload(local: Path, folder: str) -> None:
    """Copy all files below a local folder."""
    for path in sorted(local.rglob("*")):
        if path.is_file():
            write(f"{folder}/{path.relative_to(local).as_posix()}", path.read_bytes())
