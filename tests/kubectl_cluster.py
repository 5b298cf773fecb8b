"""A stand-in for kubectl and its cluster: it prints what the real ones do, and runs nothing.

The texts are those of kubectl and of API servers 1.36 with JobSet 0.12 and Kueue 0.19:
https://github.com/kubernetes/kubectl/blob/v0.34.1/pkg/cmd/util/helpers.go, and
https://github.com/kubernetes/apimachinery/blob/v0.34.1/pkg/api/errors/errors.go. No admission of GKE is part of it.
"""

import json
import os
import shlex
import signal
import sys
import time
from pathlib import Path
from typing import Any, Final

RESOURCES: Final = {
    "ServiceAccount": "serviceaccounts",
    "SecretProviderClass": "secretproviderclasses.secrets-store.csi.x-k8s.io",
    "SecretSync": "secretsyncs.secret-sync.gke.io",
    "JobSet": "jobsets.jobset.x-k8s.io",
    "Job": "jobs.batch",
}
EMPTY: Final = {
    "objects": [],
    "nodes": 4,
    "missing_kinds": [],
    "errors": {},
    "calls": [],
    "warnings": [],
}
"""The state of a cluster; `errors` has the text of the error by the kind that is created, with `dry ` for a dry run."""


_INTERRUPTED: Final = 99
"""The status of a creation during which tpucfg gets SIGTERM."""


def install_kubectl(programs: Path, state: Path, **values: Any) -> None:
    """Put a kubectl on the PATH whose cluster is a file, in which it also notes its calls."""
    from jobs import program  # only here: each call of the stand-in would import the compiler, too

    state.write_text(json.dumps(EMPTY | values))
    program(
        programs,
        "kubectl",
        f'exec {shlex.join([sys.executable, "-SE", __file__, str(state)])} "$@"',
    )


def cluster(state: Path) -> dict[str, Any]:
    """Return the state of the cluster."""
    data: dict[str, Any] = json.loads(state.read_text())
    return data


def _main(state: Path, argv: list[str]) -> int:
    data = cluster(state)
    words = [word for word in argv if not word.startswith("--")]
    data["calls"].append(argv)
    status = {"create": _create, "get": _get, "delete": _delete}[words[0]](data, words[1:], argv)
    state.write_text(json.dumps(data))
    if status == _INTERRUPTED:
        os.kill(os.getppid(), signal.SIGTERM)
        time.sleep(60)
    return status


def _create(data: dict[str, Any], _: list[str], argv: list[str]) -> int:
    body = json.loads(sys.stdin.read())
    kind, name = (
        body["kind"],
        body["metadata"].get("name", body["metadata"].get("generateName", "") + "x2b4c"),
    )
    is_dry = "--dry-run=server" in argv
    if kind in data["missing_kinds"]:
        namespace = body["metadata"]["namespace"]
        return _fail(
            f'error: resource mapping not found for name: "{name}" namespace: "{namespace}" from "STDIN": no matches '
            f'for kind "{kind}" in version "{body["apiVersion"]}"\nensure CRDs are installed first'
        )
    for warning in data["warnings"]:
        sys.stderr.write(f"Warning: {warning}\n")
    key = f"{RESOURCES[kind]}/{name}"
    if error := data["errors"].get(f"dry {kind}" if is_dry else kind):
        if error in ("lost", "interrupted"):
            data["objects"].append(key)
        if error == "interrupted":
            return _INTERRUPTED
        if error == "lost":
            error = "Unable to connect to the server: EOF"
        return _fail(error)
    if key in data["objects"]:
        return _fail(
            f'Error from server (AlreadyExists): error when creating "STDIN": {RESOURCES[kind]} "{name}" already exists'
        )
    if not is_dry:
        data["objects"].append(key)
    group = RESOURCES[kind].partition(".")[2]
    return _print(
        f"{kind.lower()}{group and '.' + group}/{name} created{' (server dry run)' if is_dry else ''}"
    )


def _get(data: dict[str, Any], words: list[str], _: list[str]) -> int:
    resource, name = [*words[0].split("/"), ""][:2]
    if error := data["errors"].get(f"get {resource}"):
        return _fail(error)
    if resource in data.get("listed", {}):
        return _print(data["listed"][resource])
    if resource == "nodes":
        return _print("\n".join(f"node/n{number}" for number in range(data["nodes"])))
    if resource in data["missing_kinds"]:
        return _fail(
            f'error: the server doesn\'t have a resource type "{resource.partition(".")[0]}"'
        )
    keys = [
        key
        for key in data["objects"]
        if key.partition("/")[0].startswith(resource) and key.endswith(f"/{name}")
    ]
    return _print("\n".join(keys))


def _delete(data: dict[str, Any], words: list[str], argv: list[str]) -> int:
    resource, _, name = words[0].partition("/")
    if error := data["errors"].get(f"delete {resource}"):
        return _fail(error)
    keys = [
        key
        for key in data["objects"]
        if key.partition("/")[0].startswith(resource) and key.endswith(f"/{name}")
    ]
    if not keys and "--ignore-not-found" not in argv:
        return _fail(f'Error from server (NotFound): {resource} "{name}" not found')
    data["objects"] = [key for key in data["objects"] if key not in keys]
    return _print("".join(f'{resource} "{name}" deleted' for _ in keys))


def _print(text: str) -> int:
    sys.stdout.write(f"{text}\n")
    return 0


def _fail(text: str) -> int:
    sys.stderr.write(f"{text}\n")
    return 1


if __name__ == "__main__":
    sys.exit(_main(Path(sys.argv[1]), sys.argv[2:]))
