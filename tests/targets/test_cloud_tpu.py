import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs import CATALOG, IMAGE, compiled, gcloud_refusal, job, leaves, program
from tpucfg import schemas
from tpucfg.config.origin import origin_of
from tpucfg.targets import Message, cloud_tpu

EUROPE = {"region": "europe-west4"}
OPTIONS = {
    "service_account": "trainer@my-project.iam.gserviceaccount.com",
    "runtime_version": "v2-alpha-tpuv5-lite",
    "network": "tpus",
    "reservation": "mine",
}


def without_script(message: Message) -> tuple[Message, str]:
    """The message, and the script apart from it."""
    rest = deepcopy(message)
    script = rest["tpu"]["nodeSpec"][0]["node"].pop("metadata")["startup-script"]
    return rest, script


def test_a_multi_host_slice() -> None:
    """v3-32 in europe-west4 is one node in the zone that has it, run by the environment's own account."""
    message, script = without_script(cloud_tpu.message(job("cloud-tpu", "v3-32", environment=EUROPE)))
    assert script.startswith("#!/bin/bash\n")
    assert message == {
        "tpu": {
            "nodeSpec": [
                {
                    "parent": "projects/my-project/locations/europe-west4-a",
                    "nodeId": "mnist-dev-v3-32",
                    "node": {
                        "acceleratorType": "v3-32",
                        "runtimeVersion": "tpu-ubuntu2204-base",
                        "networkConfig": {"enableExternalIps": True},
                        "serviceAccount": {
                            "email": "tpu-mnist-dev@my-project.iam.gserviceaccount.com",
                            "scope": ["https://www.googleapis.com/auth/cloud-platform"],
                        },
                    },
                }
            ]
        }
    }


def test_every_option() -> None:
    """Account, runtime, network, labels and a reservation of the same zone go where the API has them."""
    environment = {"region": "us-west4", "labels": {"team": "vision"}}
    made = job("cloud-tpu", "v5litepod-8", environment=environment, options=OPTIONS, run="a1")
    message, _ = without_script(cloud_tpu.message(made))
    zone = "projects/my-project/locations/us-west4-a"
    assert message == {
        "tpu": {
            "nodeSpec": [
                {
                    "parent": zone,
                    "nodeId": "mnist-dev-v5litepod-8-a1",
                    "node": {
                        "acceleratorType": "v5litepod-8",
                        "runtimeVersion": "v2-alpha-tpuv5-lite",
                        "networkConfig": {"network": "tpus", "enableExternalIps": True},
                        "serviceAccount": {
                            "email": "trainer@my-project.iam.gserviceaccount.com",
                            "scope": ["https://www.googleapis.com/auth/cloud-platform"],
                        },
                        "labels": {"team": "vision"},
                    },
                }
            ]
        },
        "reservationName": f"{zone}/reservations/mine",
    }


def test_spot_is_an_empty_message() -> None:
    """Spot capacity is asked for by an empty message at the top, as gcloud does."""
    assert cloud_tpu.message(job("cloud-tpu", "v2-8", options={"spot": True}))["spot"] == {}


def test_a_whole_reservation_name_stays() -> None:
    """A reservation that is written out, say of another project, is not changed."""
    name = "projects/other/locations/us-central1-b/reservations/theirs"
    assert cloud_tpu.message(job("cloud-tpu", "v2-8", options={"reservation": name}))["reservationName"] == name


def test_every_field_has_an_origin() -> None:
    """`tpucfg why` can answer for every field that is ever written."""
    environment = {"region": "us-west4", "labels": {"team": "vision"}}
    for options in (OPTIONS, {"spot": True}):
        message = cloud_tpu.message(job("cloud-tpu", "v5litepod-8", environment=environment, options=options))
        unknown = [path for path in leaves(message) if origin_of("cloud-tpu", path) is None]
        assert unknown == []


def test_every_size_fits_schema_and_rules() -> None:
    """The message of every size that the target takes fits the API's schema and the target's own rules."""
    taken = [slice_ for slice_ in CATALOG.all() if "cloud-tpu" in slice_.targets]
    assert {slice_.generation for slice_ in taken} == {"v2", "v3", "v4", "v5e", "v5p", "v6e"}
    for slice_ in taken:
        zone = slice_.zones[0]
        made = cloud_tpu.message(job("cloud-tpu", slice_.size, environment={"region": zone.region}))
        assert schemas.valid("cloud-tpu", made)
        assert list(cloud_tpu.rules(made, CATALOG)) == []


# The startup script, run by bash itself.

DOCKER = r"""
printf '%s\0' "$@" > "$CALLS/$(ls "$CALLS" | wc -l).docker"
case "$1" in
  container) [ -e "$STATE/trainer" ] ;;
  login) cat > "$STATE/password"; echo "$DOCKER_CONFIG" > "$STATE/config"; echo secret > "$DOCKER_CONFIG/config.json" ;;
  pull) echo x >> "$STATE/pulls"; [ "$(wc -l < "$STATE/pulls")" -gt "${FAILING:-0}" ] ;;
  run) [ "$(wc -l < "$STATE/pulls")" -gt "${FAILING:-0}" ] && touch "$STATE/trainer" ;;
esac
"""
CURL = r"""
printf '%s\0' "$@" > "$CALLS/$(ls "$CALLS" | wc -l).curl"
echo '{"access_token":"ya29.of-the-host","expires_in":3599,"token_type":"Bearer"}'
"""


class Host:
    """A machine whose docker, curl and sleep only write down how they were called."""

    def __init__(self, folder: Path) -> None:
        self.programs, self.calls_folder, self.state = (folder / name for name in ("programs", "calls", "state"))
        for made in (self.programs, self.calls_folder, self.state):
            made.mkdir(parents=True)
        program(self.programs, "docker", DOCKER)
        program(self.programs, "curl", CURL)
        program(self.programs, "sleep", 'printf "%s\\0" "$@" > "$CALLS/$(ls "$CALLS" | wc -l).sleep"')

    def boot(self, script: str, **variables: str) -> "subprocess.CompletedProcess[bytes]":
        """Run the script as the metadata agent does."""
        file = self.state / "startup-script"
        file.write_bytes(script.encode())
        paths = {"CALLS": str(self.calls_folder), "STATE": str(self.state), "PATH": f"{self.programs}:/usr/bin:/bin"}
        return subprocess.run(["/bin/bash", file], env=paths | variables, capture_output=True, check=False)

    def calls(self, name: str, *first: str) -> list[list[str]]:
        """The calls of a program that begin with these arguments, to the byte, in order."""
        files = sorted(self.calls_folder.glob(f"*.{name}"), key=lambda file: int(file.stem))
        found = [[word.decode() for word in file.read_bytes().split(b"\0")[:-1]] for file in files]
        return [call for call in found if call[: len(first)] == list(first)]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine that has never booted."""
    return Host(tmp_path)


def script_of(args: Sequence[str] = (), env: Sequence[tuple[str, str]] = (), image: str = IMAGE) -> str:
    """The script for these values, whatever a spec would say of them."""
    return cloud_tpu.startup_script(job("cloud-tpu", "v2-32")._replace(args=tuple(args), env=tuple(env), image=image))


def test_the_container_is_started(host: Host) -> None:
    """A host logs in with its account's token, pulls the image and starts the container with the program's flags."""
    made = job("cloud-tpu", "v2-32", trainer={"env": {"A": "1"}, "args": {"data_dir": "${bucket}/data"}})
    done = host.boot(cloud_tpu.startup_script(made))
    assert done.returncode == 0, done.stderr
    assert host.calls("docker", "login") == [
        ["login", "--username", "oauth2accesstoken", "--password-stdin", "https://us-docker.pkg.dev"]
    ]
    assert (host.state / "password").read_text(encoding="utf-8") == "ya29.of-the-host"
    assert host.calls("docker", "run") == [
        [
            *("run", "--detach", "--name", "trainer", "--privileged", "--net=host", "--ipc=host"),
            *("--env", "A=1", IMAGE, "--data_dir=gs://my-bucket/data"),
            *("--batch_size=256", "--train_steps=1000"),
        ]
    ]


WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
HOSTILE = st.sampled_from(
    ["'", '"', "$(touch broken)", "`id`", "$HOME", "\\", "\n", "; exit 3", "&& false", "EOF", "{{ x }}", "{% raw %}", "*"]
)
VALUES = st.lists(WORDS | HOSTILE | st.builds("".join, st.lists(WORDS | HOSTILE, max_size=3)), max_size=8)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(args=VALUES, env=VALUES)
def test_values_reach_the_container_to_the_byte(tmp_path: Path, args: list[str], env: list[str]) -> None:
    """Whatever stands in flags and variables, docker gets it as one argument and unchanged, and bash runs none of it."""
    shutil.rmtree(tmp_path)
    host = Host(tmp_path)
    variables = [(f"NAME_{number}", value) for number, value in enumerate(env)]
    done = host.boot(script_of(args, variables))
    assert done.returncode == 0, done.stderr
    (call,) = host.calls("docker", "run")
    given_env = [word for key, value in variables for word in ("--env", f"{key}={value}")]
    assert call[7:] == [*given_env, IMAGE, *args]


def test_a_host_that_boots_again_starts_nothing(host: Host) -> None:
    """At the second boot of a host the program is not run again, and the script ends well."""
    script = script_of()
    assert host.boot(script).returncode == 0
    again = host.boot(script)
    assert (again.returncode, len(host.calls("docker", "run")), len(host.calls("docker", "pull"))) == (0, 1, 1)
    assert b"is not started again" in again.stdout


def test_a_pull_that_fails_is_repeated(host: Host) -> None:
    """A registry that fails twice delays the start by 10 and 20 seconds."""
    assert host.boot(script_of(), FAILING="2").returncode == 0
    assert (len(host.calls("docker", "pull")), host.calls("sleep")) == (3, [["10"], ["20"]])


def test_an_image_that_never_comes_fails_the_script(host: Host) -> None:
    """Without the image the script fails, and the next boot tries again."""
    assert host.boot(script_of(), FAILING="99").returncode != 0
    assert host.boot(script_of()).returncode == 0


def test_the_token_is_gone_afterwards(host: Host) -> None:
    """The folder that docker keeps the token in is in memory, and gone when the script has ended, well or badly."""
    for failing in ("99", "0"):
        host.boot(script_of(), FAILING=failing)
        config = Path((host.state / "config").read_text(encoding="utf-8").strip())
        assert config.parent == Path("/dev/shm")  # noqa: S108 - the claim
        assert not config.exists()


@pytest.mark.parametrize(
    ("image", "registry"),
    [
        ("gcr.io/my-project/train:1", "https://gcr.io"),
        ("eu.gcr.io/my-project/train:1", "https://eu.gcr.io"),
        ("europe-west4-docker.pkg.dev/p/r/i@sha256:00", "https://europe-west4-docker.pkg.dev"),
        ("python:3.12", None),
        ("ghcr.io/us-docker.pkg.dev/i", None),
        ("us-docker.pkg.dev.example.com/i", None),
    ],
)
def test_only_googles_registries_get_the_token(host: Host, image: str, registry: str | None) -> None:
    """The account's token goes to Google's registries, and to no other that an image names."""
    assert host.boot(script_of(image=image)).returncode == 0
    assert [call[-1] for call in host.calls("docker", "login")] == ([registry] if registry else [])
    assert bool(host.calls("curl")) == bool(registry)


def test_the_script_is_clean() -> None:
    """shellcheck has nothing to say of a script with and without a login, flags and variables."""
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is missing")
    for script in (script_of(), script_of(["--a=$(b)", "c d"], [("E", "f'g")], "python:3.12")):
        subprocess.run(["shellcheck", "--shell=bash", "-"], input=script.encode(), check=True)


# What is refused.


@pytest.mark.parametrize(
    ("sizes", "more", "expected"),
    [
        (["tpu7x-8"], {}, "TPU024 cloud-tpu does not take tpu7x-8: the Cloud TPU API has no accelerator type for TPU7x"),
        (
            ["v2-8"],
            {"trainer": {"package": "gs://b/t.tar.gz", "module": "t.task"}},
            "TPU051 cloud-tpu runs a container, and trainer.package is a Python package",
        ),
        (
            ["v5litepod-8"],
            {"environment": {"region": "us-west4"}, "overrides": {"v5litepod-8": {"machine": "ct5lp-hightpu-4t"}}},
            "TPU026 v5litepod-8 cannot run on ct5lp-hightpu-4t: cloud-tpu chooses the machine itself",
        ),
        (
            ["v2-8"],
            {"options": {"spot": True, "reservation": "mine"}},
            "TPU054 targets.cloud-tpu asks for spot capacity and for the reservation mine",
        ),
        (
            ["v2-8"],
            {"environment": {"region": "us-west9"}, "allow": {"TPU021": "quota granted"}},
            "TPU005 dev has no zone for v2-8: no list names one in us-west9",
        ),
        (
            ["v2-8", "v2-128"],
            {
                "name": "m" * 30,
                "environments": {"e" * 27: {"project": "my-project", "region": "us-central1", "bucket": "my-bucket"}},
                "options": {"service_account": "a@my-project.iam.gserviceaccount.com"},
            },
            f"TPU030 the job {'m' * 30}-{'e' * 27}-v2-128 has a name of 65 characters, and 63 are taken for v2-128",
        ),
    ],
)
def test_what_is_refused_of_a_spec(sizes: list[str], more: dict[str, Any], expected: str) -> None:
    """Each mistake is one error, which says what is wrong and with which values."""
    errors = [f"{it.id} {it.message}" for it in compiled("cloud-tpu", *sizes, **more).findings if it.level == "error"]
    assert errors == [expected]


def test_a_region_without_the_size_is_said_once() -> None:
    """Where no list has the size in the region, TPU021 says so, and no second error asks for the zone."""
    found = compiled("cloud-tpu", "v3-32", environment={"region": "us-central1"}).findings
    assert [it.id for it in found if it.level == "error"] == ["TPU021"]


def test_a_zone_of_the_spec_is_used() -> None:
    """A zone that the spec names is the node's, also where no list has it."""
    more: dict[str, Any] = {
        "environment": {"region": "us-west9", "zones": {"v2-8": "us-west9-b"}},
        "allow": {"TPU022": "quota granted"},
    }
    result = compiled("cloud-tpu", "v2-8", **more)
    assert [it.id for it in result.findings if it.level == "error"] == []
    ((_, message),) = result.messages
    assert message["tpu"]["nodeSpec"][0]["parent"] == "projects/my-project/locations/us-west9-b"


def test_a_script_beyond_the_bounds_of_metadata() -> None:
    """Flags of more than 256 KiB do not fit the metadata value that the script is."""
    args = {f"a{number}": "x" * 8192 for number in range(32)}
    found = [it for it in compiled("cloud-tpu", "v2-8", trainer={"args": args}).findings if it.level == "error"]
    assert [it.id for it in found] == ["TPU074"]
    assert re.search(r"startup-script: it has 26\d,\d{3} bytes, and a metadata value may have 262,144", found[0].message)


def test_a_run_that_makes_the_name_too_long() -> None:
    """The id of a run counts: the name may have 63 characters with it."""
    more: dict[str, Any] = {
        "name": "m" * 30,
        "environments": {"e" * 24: {"project": "my-project", "region": "us-central1", "bucket": "my-bucket"}},
        "options": {"service_account": "a@my-project.iam.gserviceaccount.com"},
    }
    for run, expected in (("ab", []), ("abc", ["TPU030"])):
        result = compiled("cloud-tpu", "v2-8", run=run, **more)
        assert [it.id for it in result.findings if it.level == "error"] == expected


def changed(path: str, value: Any) -> Message:  # noqa: ANN401 - a value of a message
    """A good message with one field of the node spec or of the top set, or deleted where the value is None."""
    message = cloud_tpu.message(job("cloud-tpu", "v2-8"))
    *above, last = path.split(".")
    place: Any = message
    for step in above:
        place = place[int(step) if step.isdecimal() else step]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return message


NODE = "tpu.nodeSpec.0.node"


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("tpu.nodeSpec", [], "tpu.nodeSpec: it is empty, so nothing is asked for"),
        ("tpu.nodeSpec.0.parent", "us-central1-b", "us-central1-b is not of the form projects/PROJECT/locations/ZONE"),
        ("tpu.nodeSpec.0.nodeId", None, "tpu.nodeSpec[0]: it needs exactly one of nodeId and multisliceParams"),
        ("tpu.nodeSpec.0.multisliceParams", {"nodeCount": 2}, "exactly one of nodeId and multisliceParams"),
        ("tpu.nodeSpec.0.nodeId", "n" * 64, "has a name of 64 characters, and 63 are taken"),
        (f"{NODE}.acceleratorType", None, "exactly one of acceleratorType and acceleratorConfig"),
        (f"{NODE}.acceleratorConfig", {"type": "V2", "topology": "2x2"}, "exactly one of acceleratorType and"),
        (f"{NODE}.acceleratorType", "v3-16", "acceleratorType: v3-16: the catalogue has no such size"),
        (f"{NODE}.acceleratorType", "tpu7x-8", "the Cloud TPU API has no accelerator type for TPU7x"),
        (f"{NODE}.networkConfigs", [{"network": "a"}], "networkConfigs: it excludes networkConfig"),
        (f"{NODE}.description", "d" * 513, "description: it has more than 512 characters"),
        (f"{NODE}.metadata", {"a": "x" * 262_145}, "metadata.a: it has 262,145 bytes, and a metadata value may have"),
        (f"{NODE}.metadata", {"a": "x" * 262_143, "b": "y" * 262_143}, "has to stay below 524,288 bytes"),
        ("queueingPolicy", {"validUntilDuration": "1s", "validAfterDuration": "1s"}, "it excludes validUntilDuration"),
    ],
)
def test_what_is_refused_of_a_config(path: str, value: Any, expected: str) -> None:  # noqa: ANN401 - as `changed`
    """A config that fits the schema is refused where the service would refuse it, at the field."""
    message = changed(path, value)
    assert schemas.valid("cloud-tpu", message)
    (problem,) = cloud_tpu.rules(message, CATALOG)
    assert expected in problem.message


@pytest.mark.parametrize("other", [{"guaranteed": {}}, {"reservationName": "projects/p/locations/z/reservations/r"}])
def test_spot_excludes(other: Message) -> None:
    """Spot capacity is neither guaranteed nor reserved."""
    message = cloud_tpu.message(job("cloud-tpu", "v2-8")) | {"spot": {}}
    assert list(cloud_tpu.rules(message, CATALOG)) == []
    (problem,) = cloud_tpu.rules(message | other, CATALOG)
    assert problem.id == "TPU074"


def test_the_commands() -> None:
    """The job is posted as JSON with a token, watched and deleted by gcloud, and the notes say what it costs."""
    made = cloud_tpu.submission(job("cloud-tpu", "v3-32", environment=EUROPE, run="a1"))
    where = ("--project=my-project", "--zone=europe-west4-a")
    gcloud = ("gcloud", "compute", "tpus", "queued-resources")
    address = "https://tpu.googleapis.com/v2/projects/my-project/locations/europe-west4-a/queuedResources"
    assert (made.start.reads_config, made.start.config_format, made.start.token) == (True, "json", True)
    assert made.start.argv[-3:] == ("--data-binary", "@-", f"{address}?queuedResourceId=mnist-dev-v3-32-a1")
    assert made.watch.argv == (*gcloud, "describe", "mnist-dev-v3-32-a1", *where)
    assert made.delete.argv == (*gcloud, "delete", "mnist-dev-v3-32-a1", *where, "--force")
    assert "costs until it is deleted" in made.notes[0]
    assert "'--command=sudo docker logs --follow trainer'" in made.notes[1]


def test_gcloud_takes_the_commands(tmp_path: Path) -> None:
    """gcloud's own parser takes the commands that watch, delete and show the output."""
    made = cloud_tpu.submission(job("cloud-tpu", "v3-32", environment=EUROPE))
    output = shlex.split(made.notes[1].partition("output: ")[2])
    for argv in (made.watch.argv, made.delete.argv, output):
        assert gcloud_refusal(argv, tmp_path) is None
    assert "--misspelt" in str(gcloud_refusal((*made.delete.argv, "--misspelt"), tmp_path))
