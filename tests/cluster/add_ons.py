"""JobSet and Kueue, with their webhooks at loopback addresses; both are from the modules that `make cluster` builds."""

import base64
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import yaml
from processes import free_ports, is_listening, running, wait_until
from running_cluster import Cluster

_KUEUE_KINDS: Final = ("jobset", "clusterqueue", "cohort", "resourceflavor", "workload")
"""The kinds whose webhooks are installed: the others belong to frameworks that are not."""
_QUICK: Final = {"qps": 1000, "burst": 2000}


@contextmanager
def running_add_ons(
    cluster: Cluster, folder: Path, module_folder: Callable[[str], Path]
) -> Iterator[None]:
    """Run the controllers of JobSet and Kueue in the folder of a cluster."""
    with ExitStack() as stack:
        stack.enter_context(_running_jobset(cluster, folder, module_folder("sigs.k8s.io/jobset")))
        stack.enter_context(_running_kueue(cluster, folder, module_folder("sigs.k8s.io/kueue")))
        yield


@contextmanager
def _running_jobset(cluster: Cluster, folder: Path, module: Path) -> Iterator[None]:
    webhook, health = free_ports(2)
    components, certificates = module / "config" / "components", folder / "certificates"
    cluster.define(*_read(components / "crd" / "bases" / "jobset.x-k8s.io_jobsets.yaml"))
    configuration = {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "internalCertManagement": {"enable": False},
        "leaderElection": {"leaderElect": False},
        "webhook": {"port": webhook, "host": "127.0.0.1", "certDir": str(certificates)},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "clientConnection": _QUICK,
    }
    (folder / "jobset.yaml").write_text(yaml.safe_dump(configuration))
    command = [str(cluster.programs / "jobset"), f"--config={folder / 'jobset.yaml'}"]
    with running(command, folder / "jobset.log", KUBECONFIG=str(cluster.kubeconfig)) as process:
        wait_until(lambda: is_listening(webhook), process, folder / "jobset.log")
        cluster.create(*_webhooks(components, webhook, certificates, ("jobset", "pod"), "jobset"))
        yield


@contextmanager
def _running_kueue(cluster: Cluster, folder: Path, module: Path) -> Iterator[None]:
    webhook, health = free_ports(2)
    components, certificates = module / "config" / "components", folder / "certificates"
    cluster.define(
        *(each for path in (components / "crd" / "bases").glob("*.yaml") for each in _read(path))
    )
    configuration = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "namespace": "default",
        "internalCertManagement": {"enable": False},
        "leaderElection": {"leaderElect": False},
        "webhook": {"port": webhook, "host": "127.0.0.1", "certDir": str(certificates)},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "clientConnection": _QUICK,
        "integrations": {"frameworks": ["jobset.x-k8s.io/jobset"]},
    }
    (folder / "kueue.yaml").write_text(yaml.safe_dump(configuration))
    # Kueue reads the certificate of its metrics from a fixed path: it gets an /etc of its own, which has nothing else.
    metrics = folder / "etc" / "kueue" / "metrics" / "certs"
    metrics.mkdir(parents=True)
    for name in ("tls.crt", "tls.key"):
        (metrics / name).write_bytes((certificates / name).read_bytes())
    program = [str(cluster.programs / "kueue"), f"--config={folder / 'kueue.yaml'}"]
    script = 'mount --bind "$0" /etc && exec "$@"'
    private = ["unshare", "--mount", "--map-root-user", "sh", "-c", script, str(folder / "etc")]
    command = [*private, *program, "--feature-gates=VisibilityOnDemand=false"]
    with running(command, folder / "kueue.log", KUBECONFIG=str(cluster.kubeconfig)) as process:
        # Its webhooks are created once it answers: before, they would keep JobSet from creating Jobs.
        wait_until(
            lambda: is_listening(webhook) and is_listening(health), process, folder / "kueue.log"
        )
        cluster.create(*_webhooks(components, webhook, certificates, _KUEUE_KINDS, "kueue"))
        cluster.create(*yaml.safe_load_all((Path(__file__).parent / "kueue.yaml").read_text()))
        yield


def _read(path: Path) -> list[dict[str, Any]]:
    return [each for each in yaml.load_all(path.read_text(), yaml.CSafeLoader) if each]


def _webhooks(
    components: Path, port: int, certificates: Path, kinds: tuple[str, ...], prefix: str
) -> list[dict[str, Any]]:
    """Return the webhooks of kinds, with an address in the place of the service, which no node would run."""
    bundle = base64.b64encode((certificates / "apiserver.crt").read_bytes()).decode()
    configurations = _read(components / "webhook" / "manifests.yaml")
    for configuration in configurations:
        configuration["metadata"]["name"] = f"{prefix}-{configuration['metadata']['name']}"
        paths = {
            each["name"]: each["clientConfig"]["service"]["path"]
            for each in configuration["webhooks"]
        }
        chosen = [
            each
            for each in configuration["webhooks"]
            if paths[each["name"]].rpartition("-")[2] in kinds
        ]
        for webhook in chosen:
            url = f"https://127.0.0.1:{port}{paths[webhook['name']]}"
            webhook["clientConfig"] = {"url": url, "caBundle": bundle}
        configuration["webhooks"] = chosen
    return configurations
