"""Attacks by what is in the cloud: drift that a change could hide behind."""

from typing import Final

from attacks.attack import Attack, edit
from recorded_previews import FOLDER

_HARMLESS: Final = edit("tpucfg.yaml", (":1.0", ":1.1"))
_OPENED: Final = ("--preview", f"dev={FOLDER / 'drift-and-update.jsonl'}")


ATTACKS: Final = (
    Attack(
        "bucket-opened-in-the-cloud",
        _HARMLESS,
        (
            "drift: `storage.Bucket data-us-central1`, `storage.BucketIAMMember workload-on-data-us-central1`",
        ),
        status=0,
        arguments=_OPENED,
    ),
    Attack(
        "lifecycle-edited-in-the-cloud",
        _HARMLESS,
        ("drift: `storage.Bucket data-us-central1` differs in the cloud",),
        status=0,
        arguments=("--preview", f"dev={FOLDER / 'drift.jsonl'}"),
    ),
    Attack(
        "bucket-deleted-in-the-cloud",
        _HARMLESS,
        ("drift: `storage.Bucket data-us-central1`",),
        status=0,
        arguments=("--preview", f"dev={FOLDER / 'drift-deleted.jsonl'}"),
    ),
    Attack(
        "revoked-grant-returns",
        _HARMLESS,
        (
            "`storage.BucketIAMMember workload-on-properties-of-data-us-central1` differ in the cloud",
        ),
        status=0,
        arguments=_OPENED,
    ),
)
