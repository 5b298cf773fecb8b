"""Attacks through previews: forged, incomplete, of another stack, or no preview at all."""

import json
from collections.abc import Mapping
from typing import Any, Final

from attacks.attack import (
    BUCKET,
    MAIN,
    Attack,
    Edit,
    append,
    before_deploy,
    edit,
    together,
    transform,
    write,
)
from attacks.environments import PROTECT

_NOTHING: Final = json.dumps({"steps": [], "changeSummary": {"same": 12}})
"""A preview in which nothing changes."""
_PROD: Final = ("--preview", "prod=../prod.jsonl")
_NOT_IN_PREVIEW: Final = "changes according to the stack programs, but not in the preview"
_OWNER: Final = """
import pulumi_gcp as gcp
gcp.projects.IAMMember("x", project="my-project-prod", role="roles/owner", member="user:mallory@example.com")
"""
_INHERITED: Final = transform(BUCKET, 'inputs["public_access_prevention"] = "inherited"')
_LIFT: Final = edit("tpucfg.yaml", (PROTECT, ""))


def _forged(environment: str, *steps: Mapping[str, Any], stack: str = "") -> Edit:
    """Write a preview of an environment, outside of the repository, where no commit can put it."""
    text = json.dumps({"steps": [*steps], "changeSummary": {"same": 9, "update": len(steps)}})
    return write(f"../{environment}.jsonl", text.replace("STACK", stack or environment))


def _step(
    op: str, kind: str, name: str, old: Mapping[str, Any], new: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return a step of a document as `pulumi preview --json` prints it."""
    urn = f"urn:pulumi:STACK::mnist::{kind}::{name}"
    states = {"oldState": old, "newState": new}
    return {"op": op, "urn": urn} | {
        key: {"urn": urn, "custom": True, "type": kind, **state}
        for key, state in states.items()
        if state
    }


_BUCKET: Final = (BUCKET, "data-my-project-dev-mnist-dev-us-central1")
_LABELS: Final = _step("update", *_BUCKET, {"inputs": {}}, {"inputs": {"labels": {"a": "b"}}})
_LOSING_DATA: Final = edit("tpucfg.yaml", ("  dev:\n", "  dev:\n    keep_data: false\n"))
_MOVE: Final = edit(
    "tpucfg.yaml", ("region: us-central1          #", "region: europe-west4         #")
)
_VIEWER: Final = {
    "project": "my-project-prod",
    "role": "roles/viewer",
    "member": "user:mallory@example.com",
}
_OBJECT_VIEWER: Final = _VIEWER | {"role": "roles/storage.objectViewer"}

ATTACKS: Final = (
    Attack(
        "protection-lifted-behind-a-forged-preview",
        together(_LIFT, write("../prod.jsonl", _NOTHING)),
        ("**prod**: protection lifted", _NOT_IN_PREVIEW),
        arguments=_PROD,
    ),
    Attack(
        "owner-granted-behind-a-forged-preview",
        together(append(MAIN, _OWNER), write("../prod.jsonl", _NOTHING)),
        ("`roles/owner`", _NOT_IN_PREVIEW),
        status=0,
        arguments=_PROD,
    ),
    Attack(
        "grant-behind-a-preview-of-a-new-stack",
        together(
            append(MAIN, _OWNER.replace("roles/owner", "roles/storage.objectViewer")),
            _forged(
                "prod",
                _step(
                    "create",
                    "gcp:projects/iAMMember:IAMMember",
                    "x",
                    {},
                    {"inputs": _OBJECT_VIEWER},
                ),
            ),
        ),
        ("`roles/storage.objectViewer`",),
        status=0,
        arguments=_PROD,
    ),
    Attack(
        "preview-shows-a-milder-role",
        together(
            append(MAIN, _OWNER),
            _forged(
                "prod",
                _step("create", "gcp:projects/iAMMember:IAMMember", "x", {}, {"inputs": _VIEWER}),
            ),
        ),
        ("`roles/owner`", _NOT_IN_PREVIEW),
        status=0,
        arguments=_PROD,
    ),
    Attack(
        "preview-shows-only-labels-of-the-bucket",
        together(
            _INHERITED,
            _forged("prod", _LABELS),
        ),
        ("publicAccessPrevention", _NOT_IN_PREVIEW),
        status=0,
        arguments=_PROD,
    ),
    Attack(
        "bucket-deleted-behind-a-forged-preview",
        together(
            _MOVE,
            write("../dev.jsonl", _NOTHING),
        ),
        (
            "`storage.Bucket` `data-my-project-dev-mnist-dev-us-central1`",
            "its data is lost",
            _NOT_IN_PREVIEW,
        ),
        base=_LOSING_DATA,
        arguments=("--preview", "dev=../dev.jsonl"),
    ),
    Attack(
        "deletion-shown-as-update",
        together(
            _MOVE,
            _forged("dev", _LABELS),
        ),
        ("its data is lost", _NOT_IN_PREVIEW),
        base=_LOSING_DATA,
        arguments=("--preview", "dev=../dev.jsonl"),
    ),
    Attack(
        "program-fails-behind-a-forged-preview",
        together(
            before_deploy("raise SystemExit(0)"),
            write("../prod.jsonl", _NOTHING),
        ),
        ("the preview could not be compared with the stack programs, so it alone is shown",),
        status=1,
        arguments=_PROD,
    ),
    Attack(
        "preview-of-another-stack",
        together(
            _LIFT,
            _forged("prod", _LABELS, stack="dev"),
        ),
        ("**prod**: protection lifted", "instead of prod"),
        arguments=_PROD,
    ),
    Attack(
        "stack-that-seems-not-to-exist",
        together(_LIFT, write("../prod.jsonl", "error: no stack named 'prod' found\n")),
        ("**prod**: protection lifted",),
        arguments=_PROD,
    ),
    Attack(
        "rule-broken-behind-a-forged-preview",
        together(
            _INHERITED,
            write("../prod.jsonl", _NOTHING),
            write("../dev.jsonl", _NOTHING),
        ),
        ("TPU09", "no longer prevents public access to its objects"),
        status=0,
        arguments=(*_PROD, "--preview", "dev=../dev.jsonl"),
    ),
    Attack(
        "markup-in-a-preview",
        together(
            _LIFT,
            write(
                "../prod.jsonl",
                "error: \n::set-output name=x::y\n</details>\n<!-- tpucfg-review -->\n",
            ),
        ),
        ("**prod**: protection lifted", "changes to resources are unknown"),
        arguments=_PROD,
    ),
)
