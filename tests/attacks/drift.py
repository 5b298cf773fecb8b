"""Attacks by what is in the cloud: drift that a change could hide behind."""

from typing import Final

from attacks.attack import Attack, edit
from recorded_previews import FOLDER

_HARMLESS: Final = edit("tpucfg.yaml", (":1.0", ":1.1"))
_OPENED: Final = ("--preview", f"dev={FOLDER / 'drift-and-update.jsonl'}")

_DATA: Final = "data-acme-dev-mnist-dev-us-central1"

ATTACKS: Final = (
    Attack(
        "bucket-opened-in-the-cloud",
        _HARMLESS,
        (f"drift: `storage.Bucket {_DATA}`, `storage.BucketIAMMember workload-on-{_DATA}`",),
        status=0,
        arguments=_OPENED,
    ),
    Attack(
        "lifecycle-edited-in-the-cloud",
        _HARMLESS,
        (f"drift: `storage.Bucket {_DATA}` differs in the cloud",),
        status=0,
        arguments=("--preview", f"dev={FOLDER / 'drift.jsonl'}"),
    ),
    Attack(
        "bucket-deleted-in-the-cloud",
        _HARMLESS,
        (f"drift: `storage.Bucket {_DATA}`",),
        status=0,
        arguments=("--preview", f"dev={FOLDER / 'drift-deleted.jsonl'}"),
    ),
    Attack(
        "revoked-grant-returns",
        _HARMLESS,
        (f"`storage.BucketIAMMember workload-on-properties-of-{_DATA}` differ in the cloud",),
        status=0,
        arguments=_OPENED,
    ),
)
