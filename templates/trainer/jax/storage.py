"""Files in a folder or in a bucket: a path, or a URL like `gs://bucket/path`."""

from functools import cache
from pathlib import Path

from google.cloud.storage import Blob, Bucket, Client

_SCHEME = "gs://"


@cache
def _client() -> Client:
    return Client()


def _object(path: str) -> tuple[Bucket, str]:
    """Return the bucket and the object's name."""
    bucket, _, name = path[len(_SCHEME) :].partition("/")
    return _client().bucket(bucket), name


def _blob(path: str) -> Blob:
    bucket, name = _object(path)
    return bucket.blob(name)


def names(folder: str) -> list[str]:
    """Return the names of the files in the folder; an empty list if it does not exist."""
    if folder.startswith(_SCHEME):
        bucket, name = _object(folder)
        blobs = bucket.list_blobs(prefix=f"{name}/", delimiter="/")
        return [blob.name.rpartition("/")[2] for blob in blobs]
    return [path.name for path in Path(folder).glob("*") if path.is_file()]


def read(path: str) -> bytes:
    """Return the content of a file."""
    if path.startswith(_SCHEME):
        return bytes(_blob(path).download_as_bytes())
    return Path(path).read_bytes()


def write(path: str, data: bytes) -> None:
    """Write the file atomically: readers see the old or the new content."""
    if path.startswith(_SCHEME):  # an object appears only when it is complete
        _blob(path).upload_from_string(data, content_type="application/octet-stream")
        return
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f"{file.name}.partial")
    partial.write_bytes(data)
    partial.replace(file)


def remove(path: str) -> None:
    """Remove the file."""
    if path.startswith(_SCHEME):
        _blob(path).delete()
    else:
        Path(path).unlink()


def upload(local: Path, folder: str) -> None:
    """Copy all files below a local folder."""
    for path in sorted(local.rglob("*")):
        if path.is_file():
            write(f"{folder}/{path.relative_to(local).as_posix()}", path.read_bytes())
