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
            "drift: `storage.Bucket` `data-us-central1` no longer prevents public access to its objects",
        ),
        status=0,
        arguments=_OPENED,
    ),
    Attack(
        "lifecycle-edited-in-the-cloud",
        _HARMLESS,
        ("`lifecycleRules[0].condition.age: 14 → 3`",),
        status=0,
        arguments=("--preview", f"dev={FOLDER / 'drift.jsonl'}"),
    ),
    Attack(
        "bucket-deleted-in-the-cloud",
        _HARMLESS,
        (
            "`storage.Bucket` `data-us-central1` was deleted in the cloud with its data; the update creates it again",
        ),
        status=0,
        arguments=("--preview", f"dev={FOLDER / 'drift-deleted.jsonl'}"),
    ),
    Attack(
        "revoked-grant-returns",
        _HARMLESS,
        (
            "was deleted in the cloud; the update creates it again and grants `roles/storage.objectUser` on the bucket",
        ),
        status=0,
        arguments=_OPENED,
    ),
)
