"""A Kubernetes control plane on loopback addresses: etcd, the API server, and JobSet's webhooks; no node, no kubelet.

It accepts and refuses objects as a cluster does, and runs none: the controllers of Jobs and the scheduler are not
started, and neither is anything of GKE.
"""

import base64
import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

TOKEN: Final = "cluster-admin"  # noqa: S105 - of a server on a loopback address, for one test session
READER: Final = "reader"
"""The token of a user who may create JobSets and no Jobs."""
START_SECONDS: Final = 60.0
SECRET_KINDS: Final = {
    "secretproviderclasses": ("secrets-store.csi.x-k8s.io", "SecretProviderClass", "v1"),
    "secretsyncs": ("secret-sync.gke.io", "SecretSync", "v1"),
}
"""The kinds of the secrets' companions. Their definitions here are open ones: GKE's own are closed to the public."""


class Cluster(NamedTuple):
    """A running control plane."""

    programs: Path
    kubeconfig: Path
    server: str

    def kubectl(self, *words: str, text: str | None = None, check: bool = True) -> "subprocess.CompletedProcess[str]":
        """Run kubectl as the administrator."""
        command = [str(self.programs / "kubectl"), f"--kubeconfig={self.kubeconfig}", *words]
        result = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        assert result.returncode == 0 or not check, result.stderr
        return result

    def create(self, *objects: Mapping[str, Any]) -> None:
        """Create objects."""
        self.kubectl("create", "--filename=-", text="---\n".join(json.dumps(each) + "\n" for each in objects))

    def names(self, kind: str, namespace: str = "default") -> list[str]:
        """Return the names of the objects of a kind."""
        return self.kubectl("get", kind, f"--namespace={namespace}", "--output=name").stdout.split()


def _ports(count: int) -> list[int]:
    """Return ports that are free, and different from each other."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]


@contextmanager
def _running(command: Sequence[str], log: Path, **environment: str) -> Iterator[None]:
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env={**os.environ, **environment})
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_until(is_ready: Callable[[], bool], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not is_ready():
        assert time.monotonic() < deadline, log.read_text()[-2000:]
        time.sleep(0.2)


def _is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def running_cluster(programs: Path, jobset: Path, folder: Path) -> Iterator[Cluster]:
    """Run a control plane in a folder, with JobSet installed."""
    etcd, peer, api, webhook, health = _ports(5)
    server, certificates = f"https://127.0.0.1:{api}", folder / "certificates"
    (folder / "tokens.csv").write_text(f"{TOKEN},admin,admin,system:masters\n{READER},reader,reader,readers\n")
    subprocess.run(["openssl", "genrsa", "-out", str(folder / "accounts.key"), "2048"], check=True, capture_output=True)
    with ExitStack() as stack:
        of_etcd = [f"--listen-client-urls=http://127.0.0.1:{etcd}", f"--advertise-client-urls=http://127.0.0.1:{etcd}"]
        of_peers = [f"--listen-peer-urls=http://127.0.0.1:{peer}", "--unsafe-no-fsync", "--log-level=error"]
        command = [str(programs / "etcd"), f"--data-dir={folder / 'etcd'}", *of_etcd, *of_peers]
        stack.enter_context(_running(command, folder / "etcd.log"))
        stack.enter_context(_running(_api_server(programs, folder, etcd, api), folder / "api.log"))
        cluster = Cluster(programs, folder / "kubeconfig", server)
        write_kubeconfig(cluster.kubeconfig, server, TOKEN, ["default"])
        _wait_until(lambda: cluster.kubectl("get", "--raw=/readyz", check=False).returncode == 0, folder / "api.log")
        # The certificate of the server, for which it is its own authority, is that of the webhooks too.
        (certificates / "tls.crt").write_bytes((certificates / "apiserver.crt").read_bytes())
        (certificates / "tls.key").write_bytes((certificates / "apiserver.key").read_bytes())
        resources = jobset / "config" / "components"
        cluster.create(yaml.safe_load((resources / "crd/bases/jobset.x-k8s.io_jobsets.yaml").read_text()))
        configuration = {
            "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
            "kind": "Configuration",
            "internalCertManagement": {"enable": False},
            "leaderElection": {"leaderElect": False},
            "webhook": {"port": webhook, "host": "127.0.0.1", "certDir": str(certificates)},
            "metrics": {"bindAddress": "0"},
            "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        }
        (folder / "jobset.yaml").write_text(yaml.safe_dump(configuration))
        command = [str(programs / "jobset"), f"--config={folder / 'jobset.yaml'}"]
        stack.enter_context(_running(command, folder / "jobset.log", KUBECONFIG=str(cluster.kubeconfig)))
        _wait_until(lambda: _is_listening(webhook), folder / "jobset.log")
        cluster.create(*_webhooks(resources, webhook, certificates / "apiserver.crt"))
        yield cluster


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
    ]


def _webhooks(resources: Path, port: int, authority: Path) -> list[dict[str, Any]]:
    """Return JobSet's webhooks with an address in the place of the service, which no node would run."""
    text = (resources / "webhook/manifests.yaml").read_text()
    configurations: list[dict[str, Any]] = [each for each in yaml.safe_load_all(text) if each]
    for configuration in configurations:
        for webhook in configuration["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            bundle = base64.b64encode(authority.read_bytes()).decode()
            webhook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle}
    return configurations


def write_kubeconfig(path: Path, server: str, token: str, contexts: Sequence[str]) -> None:
    """Write the configuration of kubectl for a user, with contexts of these names."""
    names = [{"name": name, "context": {"cluster": "c", "user": "u", "namespace": "default"}} for name in contexts]
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server, "insecure-skip-tls-verify": True}}],
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
            "versions": [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
