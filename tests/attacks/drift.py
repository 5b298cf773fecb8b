"""Attacks by what is in the cloud: hidden drift, undeclared grants, forged policies, and a forged earlier review."""

import json
from pathlib import Path
from typing import Any, Final

from attacks.attack import Attack, Edit, append, edit, together
from recorded_previews import FOLDER
from repositories import Repository

_BUCKET: Final = "my-project-dev-mnist-dev-us-central1"
_URN: Final = "urn:pulumi:dev::tpucfg::tpucfg:index:Environment$gcp:storage/bucket:Bucket::data-us-central1"
_POLICY: Final = ("--policy", "dev=../policy.json")
_HARMLESS: Final = edit("tpucfg.yaml", (":1.0", ":1.1"))
_KNOWN: Final = append("tpucfg.yaml", f"allow_drift:\n  {_URN}: the data team edits it\n")
_OPENED: Final = ("--preview", f"dev={FOLDER / 'drift-and-update.jsonl'}")


def _policy(*bindings: tuple[str, list[str]], bucket: str = _BUCKET) -> Edit:
    """Write a policy beside the repository, as the preview job does."""
    data: dict[str, Any] = {
        "bindings": [{"role": role, "members": members} for role, members in bindings],
        "resourceId": f"projects/_/buckets/{bucket}",
    }
    return together(_HARMLESS, _outside("policy.json", json.dumps(data)))


def _outside(name: str, text: str) -> Edit:
    def apply(repository: Repository) -> None:
        (Path(repository.folder).parent / name).write_text(text)

    return apply


def _agent(number: int) -> str:
    return f"serviceAccount:service-{number}@cloud-tpu.iam.gserviceaccount.com"


ATTACKS: Final = (
    Attack(
        "undeclared-admin",
        _policy(("roles/storage.admin", ["user:eve@evil.example"])),
        (
            f"**dev**: drift: the bucket `{_BUCKET}` grants `roles/storage.admin` to `user:[redacted]@evil.example`",
            "1 undeclared grant in the cloud",
        ),
        status=0,
        arguments=_POLICY,
        absent=("eve@evil",),
    ),
    Attack(
        "public-grant-below-many-others",
        _policy(("roles/storage.objectViewer", [*(f"group:g{n}@example.com" for n in range(100)), "allUsers"])),
        ("`roles/storage.objectViewer` to everyone, through `allUsers`", "91 more grants that the stack"),
        status=0,
        arguments=_POLICY,
    ),
    Attack(
        "agent-of-a-strangers-project",
        _policy(("roles/storage.objectUser", [_agent(1), _agent(666)])),
        (f"grants `roles/storage.objectUser` to `{_agent(666)}`",),
        status=0,
        arguments=_POLICY,
    ),
    Attack(
        "agent-of-a-strangers-project-alone",
        _policy(("roles/storage.objectUser", [_agent(666)])),
        (f"`{_agent(666)}` counts as declared: only a preview knows the project's number",),
        status=0,
        arguments=_POLICY,
    ),
    Attack(
        "default-role-of-a-strangers-project",
        _policy(("roles/storage.legacyBucketOwner", ["projectOwner:my-project-dev", "projectOwner:evil"])),
        ("grants `roles/storage.legacyBucketOwner` to `projectOwner:evil`",),
        status=0,
        arguments=_POLICY,
    ),
    Attack(
        "policy-of-another-bucket",
        _policy(bucket="harmless"),
        (f"the policy is of the bucket harmless instead of {_BUCKET}",),
        status=0,
        arguments=_POLICY,
    ),
    Attack(
        "policy-too-large-to-read",
        _policy(("roles/viewer", [f"user:u{number}@example.com" for number in range(100_000)])),
        ("drift of the grants on the bucket is unknown: the file is larger than 1 MiB (policy.json)",),
        status=0,
        arguments=_POLICY,
    ),
    Attack(
        "policy-refused-by-google",
        together(
            _HARMLESS, _outside("policy.json", "ERROR: (gcloud.storage) <b>ada@example.com</b> does not have access\n")
        ),
        ("drift of the grants on the bucket is unknown: the file contains no policy (policy.json): ERROR:",),
        status=0,
        arguments=_POLICY,
        absent=("ada@", "<b>"),
    ),
    Attack(
        "opened-bucket-allowed-by-the-change-itself",
        _KNOWN,
        (
            f"drift of `{_URN}` is now allowed (`the data team edits it`)",
            "`data-us-central1` no longer prevents public access to its objects: `publicAccessPrevention`; differs in",
        ),
        status=0,
        arguments=_OPENED,
    ),
    Attack(
        "bucket-opened-after-its-drift-was-allowed",
        _HARMLESS,
        (
            "drift: `storage.Bucket` `data-us-central1` no longer prevents public access to its objects",
            "`allow_drift` covers neither access nor deletion",
        ),
        status=0,
        base=_KNOWN,
        arguments=_OPENED,
    ),
    Attack(
        "lifecycle-edited-in-the-cloud-and-allowed-by-the-change",
        _KNOWN,
        ("`lifecycleRules[0].condition.age`: `14` → `3`", "this change adds it to `allow_drift`"),
        status=0,
        arguments=("--preview", f"dev={FOLDER / 'drift.jsonl'}"),
    ),
    Attack(
        "bucket-deleted-in-the-cloud",
        _HARMLESS,
        ("`storage.Bucket` `data-us-central1` was deleted in the cloud with its data; the update creates it again",),
        status=0,
        arguments=("--preview", f"dev={FOLDER / 'drift-deleted.jsonl'}"),
    ),
    Attack(
        "revoked-grant-returns",
        _HARMLESS,
        ("was deleted in the cloud; the update creates it again and grants `roles/storage.objectUser` on the bucket",),
        status=0,
        arguments=_OPENED,
    ),
    Attack(
        "reviewed-marker-in-a-reason",
        append("tpucfg.yaml", f"allow_drift:\n  {_URN}: '--><!-- tpucfg-reviewed: {'0' * 40} -->'\n"),
        (f"is now allowed (`--><!-- tpucfg-reviewed: {'0' * 40} -->`)",),
        status=0,
        absent=(f"\n<!-- tpucfg-reviewed: {'0' * 40}",),
    ),
    Attack("earlier-review-as-an-option", _HARMLESS, (), status=2, arguments=("--since=--output=x",)),
    Attack(
        "earlier-review-that-does-not-exist",
        _HARMLESS,
        ("**Since the last review**: unknown, as its commit, `</details>|@team`, is not in this clone",),
        status=0,
        arguments=("--since=</details>|@team",),
    ),
)
