"""Trainers as users have them: written by `tpucfg init --trainer`, and run with the flags of a rendered config."""

import json
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from spec_factory import ROOT, configs
from tpucfg.cli.app import run

TENSORFLOW: Final = ROOT / ".venv" / "tensorflow" / "bin" / "python"
"""What `make tensorflow` builds."""
PYTHONS: Final = {"jax": Path(sys.executable), "tensorflow": TENSORFLOW}
QUICK: Final = {
    "train_steps: 4000": "train_steps: 200",
    "warmup_steps: 200": "warmup_steps: 20",
    "_steps: 500": "_steps: 50",
}
"""The same spec for a run of seconds."""
TIMEOUT_SECONDS: Final = 300

_ARGS: Final[Mapping[str, Callable[[Any], list[str]]]] = {
    "vertex-ai": lambda it: it["workerPoolSpecs"][0]["containerSpec"]["args"],
    "ai-platform": lambda it: it["trainingInput"]["args"],
    "gke": lambda it: it["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]["args"],
    "cloud-tpu": lambda it: _of_docker(it["tpu"]["nodeSpec"][0]["node"]["metadata"]["startup-script"]),
}
"""Where a config carries the flags."""


def _of_docker(script: str) -> list[str]:
    words = shlex.split(script[script.index("docker run") :])
    return [
        word for word in words[next(at for at, word in enumerate(words) if word.endswith(":1.0")) :] if word != "\n"
    ][1:]


class Run(NamedTuple):
    """What a trainer printed."""

    lines: list[str]

    @property
    def figures(self) -> dict[str, float]:
        """Its last line."""
        return dict(json.loads(self.lines[-1]))

    def losses(self) -> dict[str, float]:
        """By step, as far as they were printed."""
        said = [line.removeprefix("step ").split(" of ") for line in self.lines if line.startswith("step ")]
        return {step: float(rest.partition(": loss ")[2]) for step, rest in said}


class Trainer(NamedTuple):
    """A new project, and the Python that its trainer runs in."""

    folder: Path
    target: str
    python: Path

    def flags(self, size: str) -> list[str]:
        """Those of the rendered config, to the letter."""
        (config,) = configs((self.folder / "tpucfg.yaml").read_text(), environments=("dev",), sizes=(size,))
        return _ARGS[self.target](config.request_body)

    def start(self, module: str, flags: Sequence[str], **environment: str) -> "subprocess.Popen[str]":
        """The trainer, or another module of it, on its way."""
        kept = {
            key: value for key, value in os.environ.items() if not key.startswith(("JAX_", "XLA_", "TPU_", "OMPI_"))
        }
        quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}
        return subprocess.Popen(
            [str(self.python), "-m", module, *flags],
            cwd=self.folder,
            env={**kept, **quiet, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, flags: Sequence[str], module: str = "trainer", **environment: str) -> Run:
        """Run it to its end, which has to be a good one."""
        return finished(self.start(module, flags, **environment))

    def refusal(self, flags: Sequence[str], **environment: str) -> str:
        """What it says when it gives up; a traceback is no way to say it."""
        process = self.start("trainer", flags, **environment)
        _, said = process.communicate(timeout=TIMEOUT_SECONDS)
        assert process.returncode == 1, said
        assert "Traceback" not in said
        return said


def finished(process: "subprocess.Popen[str]") -> Run:
    """What a trainer printed that was started before."""
    printed, said = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 0, f"{printed}\n{said}"
    return Run(printed.splitlines())


def new(folder: Path, framework: str, target: str = "vertex-ai", *, quick: bool = True) -> Trainer:
    """A project named mnist, in a folder that is made for it."""
    assert run(["init", str(folder), "--name", "mnist", "--target", target, "--trainer", framework]) == 0
    if quick:
        spec = folder / "tpucfg.yaml"
        text = spec.read_text()
        for old, other in QUICK.items():
            assert old in text
            text = text.replace(old, other)
        spec.write_text(text)
    return Trainer(folder, target, PYTHONS[framework])


def devices(count: int) -> dict[str, str]:
    """The environment in which JAX takes the processor for so many devices."""
    return {"XLA_FLAGS": f"--xla_force_host_platform_device_count={count}"}


def hosts(count: int) -> list[dict[str, str]]:
    """Environments of processes that find each other like the hosts of a slice: here, as under Open MPI."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    return [
        {
            "JAX_COORDINATOR_ADDRESS": address,
            "OMPI_MCA_orte_hnp_uri": "1.0;tcp://127.0.0.1:1",
            "OMPI_COMM_WORLD_SIZE": str(count),
            "OMPI_COMM_WORLD_RANK": str(index),
            "OMPI_COMM_WORLD_LOCAL_RANK": "0",
        }
        for index in range(count)
    ]


def moved(flags: Sequence[str], folder: Path) -> list[str]:
    """The flags with the bucket's address replaced by a folder."""
    return [flag.replace("gs://", f"{folder}/") for flag in flags]
