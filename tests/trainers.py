"""Run the trainers that `tpucfg init --trainer` writes, with the flags of a rendered config."""

import json
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from spec_factory import ROOT, configs
from tpucfg.cli.app import run

TENSORFLOW: Final = ROOT / ".venv" / "tensorflow" / "bin" / "python"
"""Python of the environment that `make tensorflow` builds."""
PYTHONS: Final = {"jax": Path(sys.executable), "tensorflow": TENSORFLOW}
QUICK: Final = {
    "train_steps: 4000": "train_steps: 200",
    "warmup_steps: 200": "warmup_steps: 20",
    "_steps: 500": "_steps: 50",
}
"""Replacements in the new spec that shorten a run to seconds."""
TIMEOUT_SECONDS: Final = 300

_ARGS: Final[Mapping[str, Callable[[Any], list[str]]]] = {
    "vertex-ai": lambda config: config["workerPoolSpecs"][0]["containerSpec"]["args"],
    "ai-platform": lambda config: config["trainingInput"]["args"],
    "gke": lambda config: config["spec"]["replicatedJobs"][0]["template"]["spec"]["template"][
        "spec"
    ]["containers"][0]["args"],
    "compute-engine": lambda config: _container_args(
        _host(config)["metadata"]["items"][0]["value"]
    ),
    "cloud-tpu": lambda config: _container_args(
        config["tpu"]["nodeSpec"][0]["node"]["metadata"]["startup-script"]
    ),
}
"""Functions that return the trainer's flags in a config, by target."""


def _host(config: Any) -> Any:
    """Return the fields of a host of Compute Engine."""
    return config["instance"] if "instance" in config else config["instanceTemplate"]["properties"]


def _container_args(script: str) -> list[str]:
    """Return the arguments behind the image of the script's `docker create`."""
    words = shlex.split(script[script.index("docker create") : script.rindex("start_program")])
    image = next(index for index, word in enumerate(words) if word.endswith(":1.0"))
    return [word for word in words[image + 1 :] if word != "\n"]


def flags_of(config: str, target: str) -> list[str]:
    """Return the trainer's flags in the text of a config."""
    return _ARGS[target](yaml.safe_load(config))


class Run(NamedTuple):
    """The output of a trainer's run."""

    lines: list[str]

    @property
    def figures(self) -> dict[str, float]:
        """The metrics on the last line."""
        return dict(json.loads(self.lines[-1]))

    def losses(self) -> dict[str, float]:
        """Return the printed losses by step."""
        steps = [
            line.removeprefix("step ").split(" of ")
            for line in self.lines
            if line.startswith("step ")
        ]
        return {step: float(rest.partition(": loss ")[2]) for step, rest in steps}


class Trainer(NamedTuple):
    """The trainer of a new project, and the Python to run it."""

    folder: Path
    target: str
    python: Path

    def flags(self, size: str) -> list[str]:
        """Return the exact flags of the rendered config."""
        (config,) = configs(
            (self.folder / "tpucfg.yaml").read_text(), environments=("dev",), sizes=(size,)
        )
        return _ARGS[self.target](config.request_body)

    def start(
        self, module: str, flags: Sequence[str], **environment: str
    ) -> "subprocess.Popen[str]":
        """Start the trainer, or another module, with no settings of the machine's accelerators."""
        inherited = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("JAX_", "XLA_", "TPU_", "OMPI_"))
        }
        quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}
        return subprocess.Popen(
            [str(self.python), "-m", module, *flags],
            cwd=self.folder,
            env={**inherited, **quiet, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, flags: Sequence[str], module: str = "trainer", **environment: str) -> Run:
        """Run the trainer, which must succeed, and return its output."""
        return wait_for(self.start(module, flags, **environment))

    def error_of(self, flags: Sequence[str], **environment: str) -> str:
        """Return the message of a trainer that fails, which must not be a traceback."""
        process = self.start("trainer", flags, **environment)
        _, message = process.communicate(timeout=TIMEOUT_SECONDS)
        assert process.returncode == 1, message
        assert "Traceback" not in message
        return message


def wait_for(process: "subprocess.Popen[str]") -> Run:
    """Wait for a trainer, which must succeed, and return its output."""
    output, errors = process.communicate(timeout=TIMEOUT_SECONDS)
    assert process.returncode == 0, f"{output}\n{errors}"
    return Run(output.splitlines())


def new(folder: Path, framework: str, target: str = "vertex-ai", *, quick: bool = True) -> Trainer:
    """Create a project named mnist in a new folder; if `quick`, with the short run of QUICK."""
    assert (
        run(["init", str(folder), "--name", "mnist", "--target", target, "--trainer", framework])
        == 0
    )
    if quick:
        spec = folder / "tpucfg.yaml"
        text = spec.read_text()
        for old, replacement in QUICK.items():
            assert old in text
            text = text.replace(old, replacement)
        spec.write_text(text)
    return Trainer(folder, target, PYTHONS[framework])


def devices(count: int) -> dict[str, str]:
    """Return the environment variables that make JAX treat the processor as this many devices."""
    return {"XLA_FLAGS": f"--xla_force_host_platform_device_count={count}"}


def hosts(count: int) -> list[dict[str, str]]:
    """Return environment variables for processes that find each other like the hosts of a slice, as under Open MPI."""
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


def with_local_buckets(flags: Sequence[str], folder: Path) -> list[str]:
    """Return the flags with each bucket's URL replaced by a path below the folder."""
    return [flag.replace("gs://", f"{folder}/") for flag in flags]
