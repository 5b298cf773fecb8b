"""A Kubernetes cluster on loopback addresses: etcd, the API server, the controllers and the scheduler.

`add_ons` has JobSet and Kueue, `simulated_nodes` the nodes, on which no program runs. Nothing of GKE's own is started.
"""

import http.client
import json
import re
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml
from processes import free_ports, running, wait_until

TOKEN: Final = "cluster-admin"  # noqa: S105 - of a server on a loopback address, for one test session
READER: Final = "reader"
"""The token of a user who may create JobSets and no Jobs."""
SECRET_KINDS: Final = {
    "secretproviderclasses": ("secrets-store.csi.x-k8s.io", "SecretProviderClass", "v1"),
    "secretsyncs": ("secret-sync.gke.io", "SecretSync", "v1"),
}
"""The kinds of the secrets' companions. Their definitions here are open ones: GKE's own are closed to the public."""
_CONTROLLERS: Final = (
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "node-lifecycle-controller",
    "pod-garbage-collector-controller",
    "resourcequota-controller",
    "serviceaccount-controller",
    "taint-eviction-controller",
    "ttl-after-finished-controller",
)
"""The controllers that decide about jobs; those of services, disks and certificates would only take time."""
_FAST: Final = ("--kube-api-qps=1000", "--kube-api-burst=2000")


class ApiError(Exception):
    """The server refused a request; the message is its own."""


class Cluster(NamedTuple):
    """A running cluster."""

    programs: Path
    kubeconfig: Path
    server: str

    def kubectl(
        self, *words: str, text: str | None = None, check: bool = True
    ) -> "subprocess.CompletedProcess[str]":
        """Run kubectl as the administrator."""
        command = [str(self.programs / "kubectl"), f"--kubeconfig={self.kubeconfig}", *words]
        result = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        assert result.returncode == 0 or not check, result.stderr
        return result

    def create(self, *objects: Mapping[str, Any]) -> None:
        """Create objects."""
        for each in objects:
            self.request("POST", _path(each, each["metadata"].get("namespace")), each)

    def define(self, *definitions: Mapping[str, Any]) -> None:
        """Create definitions of kinds, and wait until the server has them."""
        self.create(*definitions)
        for each in definitions:
            while not self._is_established(f"{_path(each)}/{each['metadata']['name']}"):
                time.sleep(0.1)

    def _is_established(self, path: str) -> bool:
        conditions = self.request("GET", path).get("status", {}).get("conditions") or ()
        return any(
            each["type"] == "Established" and each["status"] == "True" for each in conditions
        )

    def names(self, kind: str, namespace: str = "default") -> list[str]:
        """Return the names of the objects of a kind."""
        return self.kubectl("get", kind, f"--namespace={namespace}", "--output=name").stdout.split()

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """Send one request, without the half second of CPU time that a kubectl takes to start.

        Raises:
            ApiError: The server refused it.
        """
        patch = method == "PATCH"
        headers = {
            "Authorization": f"Bearer {TOKEN}",
            "Content-Type": "application/merge-patch+json" if patch else "application/json",
        }
        connection, sent = _connection(self.server), None if body is None else json.dumps(body)
        status = http.client.TOO_MANY_REQUESTS  # also of a kind that was just defined
        while status == http.client.TOO_MANY_REQUESTS:
            try:
                connection.request(method, path, sent, headers)
                answer = connection.getresponse()
                status, text = answer.status, answer.read().decode()
            # The server ends connections that are idle, and on a busy machine its longest answers.
            except (ConnectionError, ssl.SSLError, http.client.IncompleteRead):
                connection.close()
        if status >= http.client.BAD_REQUEST:
            raise ApiError(json.loads(text)["message"] if text.startswith("{") else text.strip())
        return json.loads(text)

    def refusal(self, body: Mapping[str, Any]) -> str:
        """Return the reason for which the server would not create an object; empty if it would."""
        options = "dryRun=All&fieldValidation=Strict"  # as of kubectl create --dry-run=server
        try:
            self.request("POST", f"{_path(body, 'default')}?{options}", body)
        except ApiError as error:
            return str(error)
        return ""

    def items(self, path: str) -> list[dict[str, Any]]:
        """Return all objects of a kind, from the server's memory."""
        items: list[dict[str, Any]] = self.request("GET", f"{path}?resourceVersion=0")["items"]
        return items


def _path(body: Mapping[str, Any], namespace: str | None = None) -> str:
    """Return the path of the objects of a kind, in a namespace or outside of all."""
    api, kind = body["apiVersion"], body["kind"].lower()
    plural = re.sub("s$", "se", re.sub("y$", "ie", kind)) + "s"
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"/{'apis' if '/' in api else 'api'}/{api}{scope}/{plural}"


def _is_ready(server: str) -> bool:
    connection = _new_connection(server)
    try:
        connection.request("GET", "/readyz", headers={"Authorization": f"Bearer {TOKEN}"})
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):  # it does not listen yet
        return False
    finally:
        connection.close()


@cache
def _connection(server: str) -> http.client.HTTPSConnection:
    return _new_connection(server)


def _new_connection(server: str) -> http.client.HTTPSConnection:
    context = ssl._create_unverified_context()  # noqa: S323, SLF001 - a server on a loopback address
    host = server.removeprefix("https://")
    return http.client.HTTPSConnection(host, context=context, timeout=120)


@contextmanager
def running_api_server(programs: Path, folder: Path) -> Iterator[Cluster]:
    """Run etcd and an API server in a folder; the folder `certificates` then has the server's certificate and key."""
    etcd, peer, api = free_ports(3)
    server, certificates = f"https://127.0.0.1:{api}", folder / "certificates"
    (folder / "tokens.csv").write_text(
        f"{TOKEN},admin,admin,system:masters\n{READER},reader,reader,readers\n"
    )
    subprocess.run(
        ["openssl", "genrsa", "-out", str(folder / "accounts.key"), "2048"],
        check=True,
        capture_output=True,
    )
    with ExitStack() as stack:
        of_etcd = [
            f"--listen-client-urls=http://127.0.0.1:{etcd}",
            f"--advertise-client-urls=http://127.0.0.1:{etcd}",
        ]
        of_peers = [
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
            "--unsafe-no-fsync",
            "--log-level=error",
        ]
        command = [str(programs / "etcd"), f"--data-dir={folder / 'etcd'}", *of_etcd, *of_peers]
        stack.enter_context(running(command, folder / "etcd.log"))
        process = stack.enter_context(
            running(_api_server(programs, folder, etcd, api), folder / "api.log")
        )
        cluster = Cluster(programs, folder / "kubeconfig", server)
        write_kubeconfig(cluster.kubeconfig, server, TOKEN, ["default"])
        wait_until(lambda: _is_ready(server), process, folder / "api.log")
        # The certificate of the server, for which it is its own authority, is that of the webhooks too.
        for name in ("crt", "key"):
            (certificates / f"tls.{name}").write_bytes(
                (certificates / f"apiserver.{name}").read_bytes()
            )
        yield cluster


@contextmanager
def running_controllers(cluster: Cluster, folder: Path) -> Iterator[None]:
    """Run the controllers of Jobs, nodes and namespaces, and the scheduler."""
    common = (
        f"--kubeconfig={cluster.kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        *_FAST,
    )
    accounts = f"--service-account-private-key-file={folder / 'accounts.key'}"
    chosen = f"--controllers={','.join(_CONTROLLERS)}"
    # On a busy machine, nodes would otherwise be given up.
    patient = "--node-monitor-grace-period=30m"
    # A quota made before its controller has found the kinds of JobSet and Kueue would wait five minutes for its use.
    quotas = "--resource-quota-sync-period=10s"
    manager = [
        str(cluster.programs / "kube-controller-manager"),
        *common,
        accounts,
        chosen,
        patient,
        quotas,
    ]
    scheduler = [str(cluster.programs / "kube-scheduler"), *common]
    with running(manager, folder / "controllers.log"), running(scheduler, folder / "scheduler.log"):
        yield


def _api_server(programs: Path, folder: Path, etcd: int, port: int) -> list[str]:
    return [
        str(programs / "kube-apiserver"),
        f"--etcd-servers=http://127.0.0.1:{etcd}",
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        f"--cert-dir={folder / 'certificates'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder / 'accounts.key'}",
        f"--service-account-signing-key-file={folder / 'accounts.key'}",
        "--max-requests-inflight=1000",
        "--max-mutating-requests-inflight=1000",
    ]


def write_kubeconfig(path: Path, server: str, token: str, contexts: Sequence[str]) -> None:
    """Write the configuration of kubectl for a user, with contexts of these names."""
    names = [
        {"name": name, "context": {"cluster": "c", "user": "u", "namespace": "default"}}
        for name in contexts
    ]
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "c", "cluster": {"server": server, "insecure-skip-tls-verify": True}}
        ],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": names,
        "current-context": contexts[0],
    }
    path.write_text(yaml.safe_dump(config))


def definition(plural: str) -> dict[str, Any]:
    """Return an open definition of a kind of the secrets' companions."""
    group, kind, version = SECRET_KINDS[plural]
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }
