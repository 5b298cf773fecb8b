"""A simulated slice, on whose hosts the real start-up script runs in bash: see `slice_clock`.

The metadata server, Cloud Storage and the API of the service are stand-ins in this module, which behave as documented:

- A file of Cloud Storage appears at once when its upload is complete (cloud.google.com/storage/docs/consistency).
- DELETE of a queued resource stops its hosts (cloud.google.com/tpu/docs/queued-resources), and so does that of a
  managed instance group (cloud.google.com/compute/docs/reference/rest/v1/instanceGroupManagers/delete).
- The metadata has the number of the host in its slice and, for several slices, that of the slice
  (github.com/jax-ml/jax, jax/_src/clusters/cloud_tpu_cluster.py).
"""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from slice_machines import Machines
from slice_scenario import Call, Host, Scenario

DELETIONS = {
    "tpu.googleapis.com": (("/queuedResources/", "/queuedResources/"), "force=true"),
    "compute.googleapis.com": (("/instances/", "/instanceGroupManagers/"), ""),
}
"""By host of the API: the collection of what is deleted, for one host and for several, and the request's query."""


class World(Machines):
    """All hosts of a run and the services that they call, which record each call that deletes the slice."""

    def __init__(self, folder: Path, scenario: Scenario) -> None:
        super().__init__(folder, scenario)
        self.objects: dict[str, str] = {}
        """The objects of the bucket."""
        self.calls: list[Call] = []

    def answer(self, host: Host, program: str, arguments: list[str]) -> tuple[int, str]:
        """Return the status and the output of a program that the script calls."""
        if program == "curl":
            return self._curl(host, arguments)
        return self.local_answer(host, program, arguments)

    def _curl(self, host: Host, arguments: list[str]) -> tuple[int, str]:
        url = urlsplit(arguments[-1])
        if url.hostname == "metadata.google.internal":
            return self._metadata(host, url.path)
        status, body = self._authorized_answer(host, arguments)
        return (0, f"{body}\n{status}\n") if status else (28, "\n000\n")

    def _authorized_answer(self, host: Host, arguments: list[str]) -> tuple[int, str]:
        # A watchdog that is killed while it reads the token can leave a request without one.
        if "Authorization: Bearer token" not in arguments:
            return 401, "{}"
        url, options = urlsplit(arguments[-1]), dict(pairwise(arguments))
        method = options["--request"]
        if url.hostname in DELETIONS:
            path, query = DELETIONS[url.hostname]
            assert (method, url.query) == ("DELETE", query)
            assert path[len(self.hosts) > 1] in url.path
            return self._delete(host), "{}"
        return self._storage(method, url.path, parse_qs(url.query), options.get("--data-binary", ""))

    def _metadata(self, host: Host, path: str) -> tuple[int, str]:
        per_slice = self.scenario.hosts_per_slice or len(self.hosts)
        number, tpu_env = host.number % per_slice, f"MEGASCALE_SLICE_ID: '{host.number // per_slice}'\n"
        if self.scenario.worker_attribute == "tpu-env":
            tpu_env += f"TPU_WORKER_ID: '{number}'\n"
        values = {
            "service-accounts/default/token": '{"access_token":"token","expires_in":3599,"token_type":"Bearer"}',
            f"attributes/{self.scenario.worker_attribute}": str(number),
            "attributes/tpu-env": f"ACCELERATOR_TYPE: 'v4-16'\n{tpu_env}",
            "id": str(1000 + host.number),
        }
        key = path.removeprefix("/computeMetadata/v1/instance/")
        return (0, values[key]) if key in values else (22, "")

    def _storage(self, method: str, path: str, query: dict[str, list[str]], data: str) -> tuple[int, str]:
        if self.scenario.broken_bucket:
            return 403, '{"error": {"code": 403}}'
        if method == "POST":
            if "/logs/" in query["name"][0] and self.scenario.refused_uploads:
                self.scenario.refused_uploads -= 1
                return 503, ""
            self.objects[query["name"][0]] = data
            return 200, "{}"
        if "prefix" in query:
            names = sorted(name for name in self.objects if name.startswith(query["prefix"][0]))
            return 200, json.dumps({"items": [{"name": name} for name in names]} if names else {}, indent=1)
        name = unquote(path.rpartition("/o/")[2])
        return (200, self.objects[name]) if name in self.objects else (404, "No such object")

    def _delete(self, host: Host) -> int:
        number = len(self.calls)
        answers = self.scenario.answers
        status = answers[number] if number < len(answers) else 200
        self.calls.append(Call(self.now, host.number, status, list(self._problems(host))))
        self.note(host, f"DELETE: {status}")
        self.deleted = status in (200, 404)
        return status

    def _problems(self, caller: Host) -> Iterator[str]:
        """Yield the reasons why a host must not delete the slice now."""
        for host in self.hosts:
            if host.container and host.container.checkpointing:
                yield f"host {host.number} writes a checkpoint"
        if self.now >= caller.deadline or all(self._is_over(host) for host in self.hosts):
            return
        if not self._is_over(caller):
            yield f"the program of host {caller.number} has not ended"
        elif caller.number and caller.ended and caller.ended[1] == "0":
            yield f"host {caller.number} has not failed, and is not the first"
        elif self.now < caller.over_at + 60 - 1:  # the script counts whole seconds
            yield "the grace is not over"

    def _is_over(self, host: Host) -> bool:
        return host.lost or (host.ended is not None and (host.container is None or host.container.status != "running"))
