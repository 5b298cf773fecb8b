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
    """The module as it stands in the template: it needs nothing but the standard library until a resolver is made."""
    spec = importlib.util.spec_from_file_location("tpu", TPU)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Resolvers:
    """Makes resolvers that answer with these in turn, and the last of them for ever; notes what they were made with."""

    def __init__(self, *answers: dict[str, list[str]] | Exception) -> None:
        self.answers = list(answers)
        self.made: list[dict[str, Any]] = []
        self.slept: list[float] = []

    def make(self, **arguments: Any) -> Any:
        """A resolver, or the error that stands for it."""
        self.made.append(arguments)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(cluster_spec=lambda: SimpleNamespace(as_dict=lambda: answer))

    def wait(self, tpu: ModuleType, **more: Any) -> Any:
        """What the module makes of these answers, without the waiting."""
        return tpu.wait(make_resolver=self.make, sleep=self.slept.append, **more)


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> Callable[[object], None]:
    """Sets TPU_CONFIG; before that, nothing of the machine's own is there."""
    monkeypatch.delenv("TPU_CONFIG", raising=False)
    monkeypatch.delenv("TRAINER_CONTAINER", raising=False)
    return lambda value: monkeypatch.setenv("TPU_CONFIG", value if isinstance(value, str) else json.dumps(value))


@pytest.mark.parametrize("value", [None, ""])
def test_without_a_config_there_is_no_tpu(tpu: ModuleType, config: Callable[[object], None], value: str | None) -> None:
    """Nothing is asked and nothing is waited for."""
    if value is not None:
        config(value)
    resolvers = Resolvers(READY)

    assert resolvers.wait(tpu) is None
    assert (resolvers.made, resolvers.slept) == ([], [])


def test_runtime_version_is_asked_without_arguments(tpu: ModuleType, config: Callable[[object], None]) -> None:
    """On a runtime version the resolver finds the TPU by itself, at once."""
    config(CONFIG)
    resolvers = Resolvers({})

    assert resolvers.wait(tpu) is not None
    assert (resolvers.made, resolvers.slept) == ([{}], [])


def test_container_names_the_tpu(
    tpu: ModuleType, config: Callable[[object], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a container of one's own, which the Dockerfile says it is, the resolver gets name, zone and project."""
    config(CONFIG)
    monkeypatch.setenv("TRAINER_CONTAINER", "1")
    resolvers = Resolvers(READY)

    assert resolvers.wait(tpu).cluster_spec().as_dict() == READY
    assert resolvers.made == [{"tpu": "node-1", "zone": "us-central1-b", "project": "my-project", "job_name": "worker"}]
    assert resolvers.slept == []


def test_container_waits_until_there_is_a_worker(tpu: ModuleType, config: Callable[[object], None]) -> None:
    """Errors and clusters without a worker are tried again after 10 seconds, until the TPU is there."""
    config(CONFIG)
    resolvers = Resolvers(OSError("no route"), {}, {"coordinator": ["10.0.0.1:1"]}, READY)

    assert resolvers.wait(tpu, custom_container=True).cluster_spec().as_dict() == READY
    assert resolvers.slept == [10, 10, 10]


def test_last_of_forty_tries_may_pass(tpu: ModuleType, config: Callable[[object], None]) -> None:
    """The fortieth try counts."""
    config(CONFIG)
    resolvers = Resolvers(*[OSError("no route")] * 39, READY)

    assert resolvers.wait(tpu, custom_container=True) is not None
    assert len(resolvers.made) == 40


@pytest.mark.parametrize(
    ("answer", "cause"),
    [(OSError("no route"), "OSError: no route"), ({"ps": ["a"]}, "its cluster has no worker: {'ps': ['a']}")],
)
def test_container_gives_up_after_forty_tries(
    tpu: ModuleType, config: Callable[[object], None], answer: Any, cause: str
) -> None:
    """40 tries, 10 seconds apart and none after the last, and then an error that names the last cause."""
    config(CONFIG)
    resolvers = Resolvers(ValueError("an earlier cause"), answer)

    with pytest.raises(RuntimeError) as raised:
        resolvers.wait(tpu, custom_container=True)

    assert str(raised.value) == f"no TPU node-1 after 40 tries, 10 seconds apart; at last, {cause}"
    assert len(resolvers.made) == 40
    assert resolvers.slept == [10] * 39


@pytest.mark.parametrize("value", ["node-1", "[]", "null", '{"tpu_node_name": "node-1", "zone": "us-central1-b"}'])
def test_config_that_names_no_tpu_is_refused(tpu: ModuleType, config: Callable[[object], None], value: str) -> None:
    """What no try could make right is said at once."""
    config(value)
    resolvers = Resolvers(READY)

    with pytest.raises(ValueError, match="TPU_CONFIG is not JSON with tpu_node_name, zone and project"):
        resolvers.wait(tpu, custom_container=True)
    assert (resolvers.made, resolvers.slept) == ([], [])


@pytest.mark.parametrize(
    ("device", "found"), [("accel0", True), ("vfio/0", True), ("vfio/vfio", False), ("tty0", False)]
)
def test_chips_of_the_machine_are_found(tpu: ModuleType, tmp_path: Path, device: str, found: bool) -> None:
    """A machine has chips of its own where one of their devices is; the driver's own device is no chip."""
    (tmp_path / device).parent.mkdir(exist_ok=True)
    (tmp_path / device).touch()

    assert tpu.attached(tmp_path) is found


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


def _said_by_tensorflow(python: str, **environment: str) -> str:
    kept = {key: value for key, value in os.environ.items() if key not in ("TPU_CONFIG", "TPU_NAME")}
    command = [python, "-c", REAL, str(TPU.parent)]
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, env={**kept, **quiet, **environment}, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def test_tensorflow_takes_these_arguments(tensorflow: str) -> None:
    """TensorFlow's own resolver finds a TPU that is there, with and without arguments."""
    there = json.dumps({**CONFIG, "tpu_node_name": "grpc://10.0.0.2:8470"})

    for container in ("", "1"):
        assert _said_by_tensorflow(tensorflow, TPU_CONFIG=there, TRAINER_CONTAINER=container) == str(READY)


def test_tensorflow_says_why_there_is_no_tpu(tensorflow: str) -> None:
    """Without a TPU that it could ask for, TensorFlow's last error is the one that is named."""
    said = _said_by_tensorflow(tensorflow, TPU_CONFIG=json.dumps(CONFIG), TRAINER_CONTAINER="1")

    assert re.match(r"no TPU node-1 after 40 tries, 10 seconds apart; at last, \w+Error: .", said)
