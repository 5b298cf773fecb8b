"""Reader of a bucket's IAM policy, as `gcloud storage buckets get-iam-policy --format=json` prints it.

https://cloud.google.com/storage/docs/json_api/v1/buckets/getIamPolicy#response
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tpucfg.infra.grants import Grant, Target
from tpucfg.review.changes.resources.undeclared_grants import bucket_target
from tpucfg.review.preview.failures import Failure, message_lines
from tpucfg.review.preview.json_scanner import JsonPiece, decode_text, scan_json

MAX_POLICY_BYTES: Final = 2**20
"""A policy has at most 1,500 principals of at most 250 characters:
https://cloud.google.com/iam/quotas#limits."""
_MAX_LINES: Final = 8
"""Lines of gcloud's error message."""
_BUCKET: Final = re.compile(r"projects/_/buckets/([^/\s]{1,222})")
"""The name of a bucket has at most 222 characters: https://cloud.google.com/storage/docs/buckets#naming."""
_NO_BUCKET: Final = re.compile(r"ERROR: \(gcloud\.storage\.[a-z.-]+\) .{0,300}not found: 404")


class BucketPolicy(NamedTuple):
    """The grants on one bucket."""

    environment: str
    bucket: str = ""
    """The bucket's name according to the policy; empty if it does not exist."""
    grants: tuple[Grant, ...] = ()
    failure: Failure | None = None


def read_policy(environment: str, file: str, data: bytes) -> BucketPolicy:
    """Read the policy of an environment's bucket.

    Args:
        environment: the name of the environment.
        file: its name, for messages.
        data: its content, of which at most MAX_POLICY_BYTES are accepted.
    """
    try:
        return _policy(environment, data)
    except PolicyError as error:
        return BucketPolicy(environment, failure=Failure(file, str(error), error.lines))


class PolicyError(Exception):
    """A file is no policy; the message is the reason."""

    def __init__(self, reason: str, lines: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.lines = tuple(lines)


def _policy(environment: str, data: bytes) -> BucketPolicy:
    if len(data) > MAX_POLICY_BYTES:
        raise PolicyError(f"the file is larger than {MAX_POLICY_BYTES // 2**20} MiB")
    pieces = tuple(scan_json(decode_text(data)))
    if broken := next((piece for piece in pieces if piece.broken), None):
        raise PolicyError(f"invalid JSON: {broken.text}")
    policy = next((piece.value for piece in pieces if piece.value is not None), None)
    if policy is None:
        if any(_NO_BUCKET.search(piece.text) for piece in pieces):
            return BucketPolicy(environment)
        raise PolicyError("the file contains no policy", _messages(pieces))
    bucket = _BUCKET.fullmatch(str(policy.get("resourceId")))
    if bucket is None:
        raise PolicyError("the policy does not name its bucket in resourceId, as gcloud storage does")
    try:
        grants = tuple(_grants(policy.get("bindings", []), bucket_target(bucket[1])))
    except (AttributeError, KeyError, TypeError):
        raise PolicyError("the bindings of the policy are malformed") from None
    return BucketPolicy(environment, bucket[1], grants)


def _messages(pieces: Sequence[JsonPiece]) -> list[str]:
    return [line for piece in pieces for line in message_lines(piece.text)][:_MAX_LINES]


def _grants(bindings: Any, on: Target) -> Iterator[Grant]:
    """Yield the grants of a list of bindings.

    Raises:
        AttributeError, KeyError, TypeError: A value has another type than in Google's API.
    """
    if not isinstance(bindings, list):
        raise TypeError
    for binding in bindings:
        for member in binding.get("members", []):
            yield Grant(_text(binding["role"]), _text(member), on, _condition(binding.get("condition")))


def _condition(value: Mapping[str, Any] | None) -> str:
    return "" if value is None else _text(value["expression"])


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
