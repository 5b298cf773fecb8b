"""The meaning of a changed address or image: where data, traffic and code come from and go to."""

import re
from typing import Any, Final

from tpucfg.changes.conditions import Comparison, texts_of
from tpucfg.changes.facts import ABSENT, FactChange, Scope
from tpucfg.changes.meanings import Meaning, caution
from tpucfg.changes.statements import Risk

_HOST: Final = r"[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,8}"
_REFERENCE: Final = re.compile(
    r"(?<![A-Za-z0-9+.-])(?:[a-z][a-z0-9+.-]{1,20}://|/gcs/)[^\s/'\"?#,;)]+"
    r"|\$\{bucket\}[\w.-][^\s/'\"?#,;)]*"
    rf"|(?<![\w:/])//{_HOST}|(?<=\}}\.){_HOST}:[0-9]{{2,5}}(?!\w)|\[[0-9a-f:]{{3,40}}\](?=:[0-9]|/|$)"
    r"|(?<![\w@:/.-])(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}(?=/)"
    rf"|(?<![\w@:/.-])(?!127\.|0\.)(?:[\w.:-]{{1,64}}@{_HOST}|{_HOST}:[0-9]{{2,5}}(?!\w)|(?:[0-9]{{1,3}}\.){{3}}[0-9]{{1,3}}(?![\w.]))",
    re.IGNORECASE,
)
"""The service and the bucket or host of an address: `gs://bucket`, `https://example.com`, and without a scheme
`git@example.com`, `example.com:5000`, `example.com/path` or `192.0.2.1`, unless that is the job's own host. With a
name after it, `${bucket}-data` is another bucket."""
_WORD_ENDS: Final = re.compile(r"[\s'\"?#,;=()]+")
_PARENT_FOLDER: Final = ".."
_BUCKETS: Final = ("gs://", "/gcs/", "${bucket}")
_DIGEST: Final = "@sha256:"
_PROJECT_REGISTRY: Final = re.compile(r"[a-z0-9$\{}-]+-docker\.pkg\.dev|(?:[a-z0-9-]+\.)?gcr\.io")
_DEFAULT_REGISTRY: Final = "docker.io"
LATEST: Final = "latest"


# Addresses


def _references(value: Any) -> set[str]:
    """Return the services and hosts of the addresses in a value."""
    return {match for text in texts_of(value) for match in _REFERENCE.findall(text)}


def _new_references(change: FactChange, comparison: Comparison) -> list[str]:
    """Return the services and hosts that neither the value before nor the base has, and that are not the bucket."""
    new = _references(change.after) - _references(change.before)
    if not new:
        return []
    bucket = comparison.pair(Scope(change.scope.environment), "environment", "bucket")[1]
    new -= {f"{start}{bucket}" for start in _BUCKETS}
    known = _known_references(comparison) if new and not comparison.is_kept(change.scope) else set()
    return sorted(new - known)


def _known_references(comparison: Comparison) -> set[str]:
    return {match for _, text in comparison.known_texts for match in _REFERENCE.findall(text)}


def _other_bucket(change: FactChange, comparison: Comparison) -> tuple[str, ...]:
    return tuple(name for name in _new_references(change, comparison) if name.startswith(_BUCKETS))[:1]


def _other_address(change: FactChange, comparison: Comparison) -> tuple[str, ...]:
    return tuple(_new_references(change, comparison)[:1])


def _leads_out(change: FactChange, _: Comparison) -> tuple[str, ...]:
    """Return the first new path that leaves a folder: `${bucket}/../other` can be a file of another bucket."""
    old, new = (
        [word for text in texts_of(value) if _PARENT_FOLDER in text for word in _WORD_ENDS.split(text)]
        for value in change[2:4]
    )
    return tuple(word for word in new if _PARENT_FOLDER in word.split("/")[1:] and word not in old)[:1]


def addresses(kind: str) -> tuple[Meaning, ...]:
    """Return the rows about addresses in a text."""
    return (
        Meaning(kind, Risk.CAUTION, "{} is not the environment's bucket", _other_bucket),
        Meaning(kind, Risk.CAUTION, "{} is a new address", _other_address),
        Meaning(kind, Risk.CAUTION, "{} leads out of its folder, and can lead to another bucket", _leads_out),
    )


# Images


def _other_registry(change: FactChange, _: Comparison) -> tuple[str, ...]:
    """Return the registries of an image after and before, if they differ."""
    if not isinstance(change.before, str) or not isinstance(change.after, str):
        return ()
    old, new = registry_of(change.before), registry_of(change.after)
    return () if old == new else (new, old)


def _new_registry(change: FactChange, comparison: Comparison) -> tuple[str, ...]:
    """Return the registry of an added image, if no job of the base has one from there.

    Without a job in the base, a registry of a Google Cloud project is the usual one.
    """
    if change.before is not ABSENT or not isinstance(change.after, str):
        return ()
    registry = registry_of(change.after)
    known = {registry_of(text) for kind, text in comparison.known_texts if kind.endswith("image")}
    is_usual = registry in known if known else _PROJECT_REGISTRY.fullmatch(registry.partition("/")[0])
    return () if is_usual else (registry,)


def registry_of(image: str) -> str:
    """Return the host of an image and the project or owner in it."""
    host, separator, rest = image.partition("/")
    if not separator or not ("." in host or ":" in host or host == "localhost"):
        host, rest = _DEFAULT_REGISTRY, image
    parts = rest.split("/")
    # The project of a domain has two parts: example.com/my-project.
    count = 2 if _PROJECT_REGISTRY.fullmatch(host) and "." in parts[0] else 1
    return "/".join([host, *parts[: min(count, len(parts) - 1)]])


def _loses_digest(change: FactChange, _: Comparison) -> bool:
    return _DIGEST in str(change.before) and change.after is not ABSENT and _DIGEST not in str(change.after)


def _becomes_mutable(change: FactChange, _: Comparison) -> bool:
    return _is_mutable(change.after) and not _is_mutable(change.before)


def _is_mutable(image: Any) -> bool:
    """Return True if an image has neither a digest nor a version of its own."""
    if not isinstance(image, str) or _DIGEST in image:
        return False
    name = image.rpartition("/")[2]
    return ":" not in name or name.endswith(f":{LATEST}")


def image(pattern: str) -> tuple[Meaning, ...]:
    """Return the rows about the address of an image."""
    return (
        caution(pattern, "code comes from {} instead of {}", _other_registry),
        caution(pattern, "code comes from {}", _new_registry),
        caution(pattern, "the digest that fixed its content is gone", _loses_digest),
        caution(pattern, "its tag can mean another image at any time", _becomes_mutable),
    )
