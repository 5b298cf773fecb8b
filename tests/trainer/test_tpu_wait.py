import importlib.util
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

import pytest

from spec_factory import ROOT

TPU: Final = ROOT / "templates" / "trainer" / "tensorflow" / "tpu.py"
CONFIG: Final = {"tpu_node_name": "node-1", "zone": "us-central1-b", "project": "my-project"}
READY: Final = {"worker": ["10.0.0.2:8470"]}


@pytest.fixture
def tpu() -> ModuleType:
    """Import the template's module, which needs only the standard library until it creates a resolver."""
    spec = importlib.util.spec_from_file_location("tpu", TPU)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Resolvers:
    """Creates resolvers with these answers in turn, repeating the last one, and records their arguments."""

    def __init__(self, *answers: dict[str, list[str]] | Exception) -> None:
        self.answers = list(answers)
        self.calls: list[dict[str, Any]] = []
        self.slept: list[float] = []

    def make(self, **arguments: Any) -> Any:
        """Return a resolver, or raise the error of this answer."""
        self.calls.append(arguments)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(cluster_spec=lambda: SimpleNamespace(as_dict=lambda: answer))

    def wait(self, tpu: ModuleType, **options: Any) -> Any:
        """Return the result of the module's `wait` for these answers, without waiting."""
        return tpu.wait(make_resolver=self.make, sleep=self.slept.append, **options)


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> Callable[[object], None]:
    """Return a function that sets TPU_CONFIG, which is unset before."""
    monkeypatch.delenv("TPU_CONFIG", raising=False)
    monkeypatch.delenv("TRAINER_CONTAINER", raising=False)
    return lambda value: monkeypatch.setenv(
        "TPU_CONFIG", value if isinstance(value, str) else json.dumps(value)
    )


@pytest.mark.parametrize("value", [None, ""])
def test_without_a_config_there_is_no_tpu(
    tpu: ModuleType, config: Callable[[object], None], value: str | None
) -> None:
    """Without a config, no resolver is created and no time is waited."""
    if value is not None:
        config(value)
    resolvers = Resolvers(READY)

    assert resolvers.wait(tpu) is None
    assert (resolvers.calls, resolvers.slept) == ([], [])


def test_runtime_version_needs_no_arguments(
    tpu: ModuleType, config: Callable[[object], None]
) -> None:
    """On a runtime version, the resolver finds the TPU without arguments, at once."""
    config(CONFIG)
    resolvers = Resolvers({})

    assert resolvers.wait(tpu) is not None
    assert (resolvers.calls, resolvers.slept) == ([{}], [])


def test_container_names_the_tpu(
    tpu: ModuleType, config: Callable[[object], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a custom container, which the Dockerfile marks, the resolver gets name, zone and project."""
    config(CONFIG)
    monkeypatch.setenv("TRAINER_CONTAINER", "1")
    resolvers = Resolvers(READY)

    assert resolvers.wait(tpu).cluster_spec().as_dict() == READY
    assert resolvers.calls == [
        {"tpu": "node-1", "zone": "us-central1-b", "project": "my-project", "job_name": "worker"}
    ]
    assert resolvers.slept == []


def test_container_waits_for_a_worker(tpu: ModuleType, config: Callable[[object], None]) -> None:
    """Errors and clusters without a worker are retried every 10 seconds until the TPU is available."""
    config(CONFIG)
    resolvers = Resolvers(OSError("no route"), {}, {"coordinator": ["10.0.0.1:1"]}, READY)

    assert resolvers.wait(tpu, custom_container=True).cluster_spec().as_dict() == READY
    assert resolvers.slept == [10, 10, 10]


def test_fortieth_try_may_succeed(tpu: ModuleType, config: Callable[[object], None]) -> None:
    """A success at the fortieth try counts."""
    config(CONFIG)
    resolvers = Resolvers(*[OSError("no route")] * 39, READY)

    assert resolvers.wait(tpu, custom_container=True) is not None
    assert len(resolvers.calls) == 40


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (OSError("no route"), "OSError: no route"),
        ({"ps": ["a"]}, "its cluster has no worker: {'ps': ['a']}"),
    ],
)
def test_container_gives_up_after_forty_tries(
    tpu: ModuleType, config: Callable[[object], None], answer: Any, cause: str
) -> None:
    """After 40 tries, 10 seconds apart and no wait after the last, an error names the last cause."""
    config(CONFIG)
    resolvers = Resolvers(ValueError("an earlier cause"), answer)

    with pytest.raises(RuntimeError) as raised:
        resolvers.wait(tpu, custom_container=True)

    assert str(raised.value) == f"no TPU node-1 after 40 tries, 10 seconds apart; at last, {cause}"
    assert len(resolvers.calls) == 40
    assert resolvers.slept == [10] * 39


@pytest.mark.parametrize(
    "value", ["node-1", "[]", "null", '{"tpu_node_name": "node-1", "zone": "us-central1-b"}']
)
def test_config_without_a_tpu_is_rejected(
    tpu: ModuleType, config: Callable[[object], None], value: str
) -> None:
    """An invalid config is reported without any try."""
    config(value)
    resolvers = Resolvers(READY)

    with pytest.raises(
        ValueError, match="TPU_CONFIG is not JSON with tpu_node_name, zone and project"
    ):
        resolvers.wait(tpu, custom_container=True)
    assert (resolvers.calls, resolvers.slept) == ([], [])


@pytest.mark.parametrize(
    ("device", "is_chip"),
    [("accel0", True), ("vfio/0", True), ("vfio/vfio", False), ("tty0", False)],
)
def test_local_chips_are_detected(
    tpu: ModuleType, tmp_path: Path, device: str, is_chip: bool
) -> None:
    """A machine has local chips if it has one of their devices; the driver's own device is not a chip."""
    (tmp_path / device).parent.mkdir(exist_ok=True)
    (tmp_path / device).touch()

    assert tpu.attached(tmp_path) is is_chip


REAL = """
import sys
sys.path.insert(0, sys.argv[1])
import tpu
try:
    resolver = tpu.wait(sleep=lambda seconds: None)
    print(resolver and resolver.cluster_spec().as_dict())
except RuntimeError as error:
    print(error)
"""


def _output_of_tensorflow(python: str, **environment: str) -> str:
    kept = {
        key: value for key, value in os.environ.items() if key not in ("TPU_CONFIG", "TPU_NAME")
    }
    command = [python, "-c", REAL, str(TPU.parent)]
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    completed = subprocess.run(
        command, env={**kept, **quiet, **environment}, capture_output=True, text=True, check=True
    )
    return completed.stdout.splitlines()[-1]


def test_tensorflow_accepts_these_arguments(tensorflow: str) -> None:
    """TensorFlow's own resolver finds an available TPU, with and without arguments."""
    local_config = json.dumps({**CONFIG, "tpu_node_name": "grpc://10.0.0.2:8470"})

    for container in ("", "1"):
        assert _output_of_tensorflow(
            tensorflow, TPU_CONFIG=local_config, TRAINER_CONTAINER=container
        ) == str(READY)


def test_message_has_the_error_of_tensorflow(tensorflow: str) -> None:
    """Without an available TPU, the message has TensorFlow's last error."""
    message = _output_of_tensorflow(
        tensorflow, TPU_CONFIG=json.dumps(CONFIG), TRAINER_CONTAINER="1"
    )

    assert re.match(
        r"no TPU node-1 after 40 tries, 10 seconds apart; at last, \w+Error: .", message
    )
