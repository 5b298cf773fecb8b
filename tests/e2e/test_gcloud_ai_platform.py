"""The ai-platform command, run by the real gcloud against a local server that records its requests.

gcloud's own endpoint setting directs it to the server, so no request leaves the machine; the token is a dummy.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from jobs import labels
from loopback import serving
from start_command import start_command
from tpucfg.catalog import Catalog
from tpucfg.render.pipeline import compile_project, render_configs
from tpucfg.spec.parse import project_from_document
from tpucfg.targets import target_named
from tpucfg.yamldoc.reader import read_text

pytestmark = [
    pytest.mark.official,
    pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not installed"),
]

SPEC = """\
version: 1
name: mnist
target: ai-platform
sizes: [v2-8]
environments:
  dev: {{project: my-project-dev, region: us-central1, labels: {{team: vision}}}}
trainer:
  {trainer}
  runtime: "2.2"
  args: {{model_dir: "${{job_dir}}"}}
training: {{tuned_on: v2-8, batch_size: 1024, epochs: 1}}
targets: {{ai-platform: {{machine: {machine}}}}}
"""
PACKAGE = 'package: gs://my-bucket/t.tar.gz\n  module: trainer.task\n  python: "3.7"'
CONTAINER = "image: gcr.io/my-project/master:1.0"


class Service:
    """A server that answers every request as if it had created the job."""

    def __init__(self) -> None:
        self.jobs: list[Any] = []
        """The received request bodies, in order."""
        jobs = self.jobs

        class Handler(BaseHTTPRequestHandler):
            """Stores the body of a request."""

            def do_POST(self) -> None:
                """Answer with a job that waits in a queue."""
                jobs.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                answer = json.dumps({"jobId": jobs[-1]["jobId"], "state": "QUEUED"}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                """Log nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)


@pytest.fixture
def service() -> Iterator[Service]:
    """Run the server for one test."""
    server = Service()
    with serving(server.server):
        yield server


@pytest.mark.parametrize(
    ("trainer", "machine"),
    [
        pytest.param(PACKAGE, "basic", id="package-basic"),
        *(
            pytest.param(PACKAGE, machine, id=f"package-{machine}")
            for machine in ("legacy", "compute-engine")
        ),
        *(
            pytest.param(CONTAINER, name, id=f"containers-{name}")
            for name in ("basic", "legacy", "compute-engine")
        ),
    ],
)
def test_gcloud_sends_the_whole_config(
    service: Service, tmp_path: Path, machine: str, trainer: str
) -> None:
    """The job that the service receives is exactly the config, with the job id and the labels of the command."""
    project, findings = project_from_document(
        read_text(SPEC.format(trainer=trainer, machine=machine), "tpucfg.yaml")
    )
    assert project is not None, findings
    (config,) = render_configs(compile_project(project, Catalog()))
    command = start_command(target_named("ai-platform").submission(config.job))
    token = tmp_path / "token"
    token.write_text("no-token")
    completed = subprocess.run(
        ["gcloud", f"--access-token-file={token}", "--quiet", *command.argv[1:]],
        input=config.text,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "CLOUDSDK_CONFIG": str(tmp_path / "gcloud"),
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_ML": f"http://127.0.0.1:{service.server.server_port}/",
            "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "true",
        },
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert completed.returncode == 0, completed.stderr
    (job,) = service.jobs
    own = {"labels": {"team": "vision", **labels("v2-8")}}
    assert job == {"jobId": "mnist_dev_v2_8", **_as_sent(config.request_body), **own}


def _as_sent(body: dict[str, Any]) -> dict[str, Any]:
    """Return a request body as the client sends it: 64-bit numbers are text, and one field is always set."""
    sent: dict[str, Any] = json.loads(json.dumps(body))
    training = sent["trainingInput"]
    if "workerCount" in training:
        training["workerCount"] = str(training["workerCount"])
    accelerator = training.get("workerConfig", {}).get("acceleratorConfig")
    if accelerator:
        accelerator["count"] = str(accelerator["count"])
    training["enableWebAccess"] = False
    return sent
