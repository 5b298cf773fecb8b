"""The startup script of Cloud TPU, run by a real bash with stubs of docker, curl, gcsfuse, apt and sleep."""

import base64
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs import IMAGE, compiled, job
from script_host import Host, deadline_of, watchdog_of
from shellcheck import SHELLCHECK
from tpucfg.targets import cloud_tpu, compute_engine

pytestmark = pytest.mark.shell


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """Return a machine that has never booted."""
    return Host(tmp_path)


def script_of(
    args: Sequence[str] = (), env: Sequence[tuple[str, str]] = (), image: str = IMAGE
) -> str:
    """Return the script for these values, without the checks of a spec."""
    return cloud_tpu.startup_script(
        job("cloud-tpu", "v2-32")._replace(args=tuple(args), env=tuple(env), image=image)
    )


def test_the_container_is_started(host: Host) -> None:
    """A host logs in with its account's token, pulls the image and starts the container with the program's flags."""
    planned_job = job(
        "cloud-tpu", "v2-32", trainer={"env": {"A": "1"}, "args": {"data_dir": "${bucket}/data"}}
    )
    completed = host.boot(cloud_tpu.startup_script(planned_job))
    assert completed.returncode == 0, completed.stderr
    assert host.calls("docker", "login") == [
        [
            "login",
            "--username",
            "oauth2accesstoken",
            "--password-stdin",
            "https://us-docker.pkg.dev",
        ]
    ]
    assert (host.state / "password").read_text(encoding="utf-8") == "ya29.of-the-host"
    assert host.calls("docker", "create") == [
        [
            *(
                "create",
                "--name",
                "trainer",
                "--privileged",
                "--net=host",
                "--ipc=host",
                "--ulimit=memlock=-1:-1",
            ),
            *("--env", "A=1", IMAGE, "--data_dir=gs://my-bucket/data"),
            *("--batch_size=256", "--train_steps=1000"),
        ]
    ]
    assert host.calls("docker", "start") == [["start", "trainer"]]


BOUNDED = {"max_run_duration": "12h", "restarts": 2}
WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
HOSTILE = st.sampled_from(
    ("'", '"', "$(id)", "`id`", "$HOME", "\\", "\n", "; exit 3", "&& false", "{{ x }}", "{% raw %}")
)
VALUES = st.lists(
    WORDS | HOSTILE | st.builds("".join, st.lists(WORDS | HOSTILE, max_size=3)), max_size=8
)


@settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(args=VALUES, env=VALUES)
def test_values_reach_the_container_unchanged(
    tmp_path: Path, args: list[str], env: list[str]
) -> None:
    """Docker gets each flag and variable as one unchanged argument, and bash executes nothing in it."""
    shutil.rmtree(tmp_path)
    host = Host(tmp_path)
    variables = [(f"NAME_{number}", value) for number, value in enumerate(env)]
    completed = host.boot(script_of(args, variables))
    assert completed.returncode == 0, completed.stderr
    (call,) = host.calls("docker", "create")
    env_arguments = [word for key, value in variables for word in ("--env", f"{key}={value}")]
    assert call[call.index("--ulimit=memlock=-1:-1") + 1 :] == [*env_arguments, IMAGE, *args]


def test_a_host_that_boots_again_starts_nothing(host: Host) -> None:
    """At the second boot of a host the script does not run the program again, and succeeds."""
    script = script_of()
    assert host.boot(script).returncode == 0
    second_boot = host.boot(script)
    assert second_boot.returncode == 0
    assert [len(host.calls("docker", name)) for name in ("pull", "create", "start")] == [1, 1, 1]
    assert b"is not started again" in second_boot.stdout


def test_a_pull_that_fails_is_repeated(host: Host) -> None:
    """A registry that fails twice delays the start by 10 and 20 seconds, and each attempt has a token of its own."""
    assert host.boot(script_of(), FAILING="2").returncode == 0
    assert (len(host.calls("docker", "pull")), host.calls("sleep")) == (3, [["10"], ["20"]])
    assert [len(host.calls(*name)) for name in (["curl"], ["docker", "login"])] == [3, 3]


def test_everything_is_tried_for_longer_than_a_new_grant_needs(host: Host) -> None:
    """The pauses add up to ten minutes, where IAM may need seven and more."""
    assert host.boot(script_of(), FAILING="99").returncode != 0
    assert sum(int(pause) for [pause] in host.calls("sleep")) == 600


@pytest.mark.parametrize(
    ("command", "failing", "refusal"),
    [
        (
            "pull",
            "FAILING",
            "Error response from daemon: manifest for a/b:2 not found: manifest unknown: Requested entity",
        ),
        (
            "start",
            "UNLOGGED",
            'runc create failed: unable to start container process: exec: "train": executable file not found',
        ),
    ],
)
def test_an_image_or_a_program_that_does_not_exist_is_not_waited_for(
    host: Host, command: str, failing: str, refusal: str
) -> None:
    """The slice is charged while it waits, so a mistake ends the script at once, with Docker's own words."""
    completed = host.boot(script_of(), **{failing: "99", "REFUSAL": refusal})
    assert completed.returncode == 99
    assert refusal in completed.stderr.decode()
    assert (len(host.calls("docker", command)), host.calls("sleep")) == (1, [])


def test_a_container_that_was_only_created_is_started_at_the_next_boot(host: Host) -> None:
    """A script that dies between the two steps leaves a container, which is no sign of a started program."""
    script = script_of()
    assert host.boot(script, UNLOGGED="99").returncode != 0
    assert host.boot(script).returncode == 0
    assert (host.state / "trainer").read_text() == "exited 255\n"
    assert len(host.calls("docker", "create")) == 1


def test_upgrades_of_the_system_are_off_before_the_program_starts(host: Host) -> None:
    """The timers that would upgrade docker are masked, so that no later boot starts them either."""
    assert host.boot(script_of(image="python:3.12")).returncode == 0
    [(command, option, *units)] = host.calls("systemctl")
    assert (command, option) == ("mask", "--now")
    assert {*units} == {"apt-daily.timer", "apt-daily-upgrade.timer", "unattended-upgrades.service"}
    assert host.order() == [
        "systemctl",
        "docker info",
        "docker container",
        "docker pull",
        "docker create",
        "docker start",
    ]


def test_huge_pages_are_on(host: Host) -> None:
    """The host's kernel uses transparent huge pages; one without them is no failure."""
    assert host.boot(script_of()).returncode == 0
    folder = host.state / "root/sys/kernel/mm/transparent_hugepage"
    assert (folder / "enabled").read_text() == "always\n"
    (folder / "enabled").unlink()
    (folder / "enabled").mkdir()
    assert host.boot(script_of()).returncode == 0


def test_an_unavailable_image_fails_the_script(host: Host) -> None:
    """Without the image the script fails, and the next boot tries again."""
    assert host.boot(script_of(), FAILING="99").returncode != 0
    assert host.boot(script_of()).returncode == 0


def test_the_token_is_deleted_afterwards(host: Host) -> None:
    """Docker stores the token in a folder in memory, which the script deletes, whether it succeeds or fails."""
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
def test_only_googles_registries_get_the_token(
    host: Host, image: str, registry: str | None
) -> None:
    """The account's token is sent to Google's registries, and to no other registry."""
    assert host.boot(script_of(image=image)).returncode == 0
    assert [call[-1] for call in host.calls("docker", "login")] == ([registry] if registry else [])
    assert bool(host.calls("curl")) == bool(registry)


def test_the_script_passes_shellcheck() -> None:
    """Shellcheck has no remark about a script with or without login, flags and variables."""
    everything = {**BOUNDED, "secrets": {"A": "a/1"}, "mounts": {"/data": "${bucket}"}}
    full = cloud_tpu.startup_script(job("cloud-tpu", "v2-32", trainer=everything))
    planned_job = job(
        "compute-engine", "v6e-16", environment={"region": "us-east5"}, trainer=everything
    )
    other = compute_engine.startup_script(planned_job)
    parts = [part(text) for text in (full, other) for part in (deadline_of, watchdog_of)]
    for script in (
        script_of(),
        script_of(["--a=$(b)", "c d"], [("E", "f'g")], "python:3.12"),
        full,
        other,
        *parts,
    ):
        subprocess.run(
            [SHELLCHECK, "--shell=bash", f"--exclude={ALLOWED}", "-"],
            input=script.encode(),
            check=True,
        )


ALLOWED = "SC2317,SC2329,SC2174,SC2094,SC2016"
"""Functions that only `retry` calls, by the names of two releases; a mode that is for one folder only; a variable that
is read from the file of its name; and a script in quotes."""


def secret_script(**changes: Any) -> str:
    """Return the script of a job with one secret."""
    trainer: dict[str, Any] = {"secrets": {"WANDB_API_KEY": "wandb/3"}} | changes
    return cloud_tpu.startup_script(job("cloud-tpu", "v2-8", trainer=trainer))


VALUES_OF_SECRETS = (
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1) | HOSTILE
)


@settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(
    value=VALUES_OF_SECRETS
    | st.sampled_from(
        ["a\nb", "-----BEGIN KEY-----\nMII\n-----END KEY-----\n", "\n\n", "x" * 65536]
    )
)
def test_a_secret_reaches_the_container_unchanged(tmp_path: Path, value: str) -> None:
    """The container's variable has the secret's value to the last line break, and no argument and no output has it."""
    shutil.rmtree(tmp_path)
    host = Host(tmp_path)
    (host.state / "secret").write_text(f"secret:{value}", newline="")
    completed = host.boot(secret_script())
    assert completed.returncode == 0, completed.stderr
    (call,) = host.calls("docker", "create")
    assert call[call.index("--env") : call.index("--env") + 2] == ["--env", "WANDB_API_KEY"]
    environment = (host.state / "environment").read_bytes().split(b"\0")
    assert f"WANDB_API_KEY=secret:{value}".encode() in environment
    assert all(
        "secret:" not in word
        for name in ("docker", "curl")
        for words in host.calls(name)
        for word in words
    )
    assert b"secret:" not in completed.stdout + completed.stderr


SCRIPT_VARIABLES = (
    "value",
    "file",
    "secrets",
    "version",
    "variable",
    "data",
    "token",
    "pause",
    "format",
    "x",
    "TMPDIR",
)


def test_secrets_do_not_disturb_each_other(host: Host) -> None:
    """Secrets named like variables of the script, of a loop or of the locale have each their own value."""
    (host.state / "secret").write_text("of ")
    secrets = {name: f"secret-{name}/1" for name in SCRIPT_VARIABLES}
    completed = host.boot(secret_script(secrets=secrets), NAMED="1")
    assert completed.returncode == 0, completed.stderr
    environment = dict(
        setting.split(b"=", 1)
        for setting in (host.state / "environment").read_bytes().split(b"\0")
        if setting
    )
    url = "https://secretmanager.googleapis.com/v1/projects/my-project/secrets"
    values = {name: environment[name.encode()].decode() for name in secrets}
    assert values == {name: f"of {url}/secret-{name}/versions/1:access" for name in secrets}


def bash_keeps(variable: str) -> bool:
    """Return True if a program that bash starts gets the value of an exported variable."""
    script = 'settings=("$1=of-the-secret"); export "${settings[@]}"; exec /usr/bin/env --null'
    completed = subprocess.run(
        ["/bin/bash", "-c", script, "bash", variable], capture_output=True, check=False
    )
    return f"{variable}=of-the-secret".encode() in completed.stdout.split(b"\0")


def test_variables_that_bash_does_not_pass_on_are_refused() -> None:
    """No secret can have a variable of bash whose value a program would not get."""
    listed = subprocess.run(
        ["/bin/bash", "-c", "compgen -v"], capture_output=True, check=True, text=True
    ).stdout
    lost = {name: "a/1" for name in listed.split() if not bash_keeps(name)}
    assert {"UID", "PPID", "GROUPS"} <= lost.keys()
    findings = compiled("cloud-tpu", "v2-8", trainer={"secrets": lost}).findings
    refused = [finding.message.split()[3] for finding in findings if finding.id == "TPU059"]
    assert sorted(refused) == sorted(lost)


@pytest.mark.parametrize(
    "variable",
    ["PATH", "HOME", "DOCKER_HOST", "DOCKER_CONFIG", "LD_PRELOAD", "BASH_ENV", "tpucfg_file"],
)
def test_variables_of_the_host_are_refused(variable: str) -> None:
    """A secret in a variable that bash, the loader, docker or the script reads is one error."""
    findings = compiled(
        "cloud-tpu", "v2-8", trainer={"secrets": {variable: "a/1", "HOME_TOKEN": "b/1"}}
    ).findings
    errors = [finding for finding in findings if finding.level == "error"]
    assert [(error.id, error.message.split(":")[0]) for error in errors] == [
        ("TPU059", f"cloud-tpu cannot set {variable} from Secret Manager")
    ]


def test_a_secret_is_fetched_from_secret_manager(host: Host) -> None:
    """The version of the spec is read with the account's token, which is in a pipe and in no argument list."""
    (host.state / "secret").write_text("value")
    assert host.boot(secret_script()).returncode == 0
    fetch = host.calls("curl")[-1]
    assert (
        fetch[-1]
        == "https://secretmanager.googleapis.com/v1/projects/my-project/secrets/wandb/versions/3:access"
    )
    assert "pipe: Authorization: Bearer ya29.of-the-host" in fetch


def test_a_secret_whose_grant_is_new_is_tried_again(host: Host) -> None:
    """A version that is refused twice is read 30 seconds later, with a new token."""
    (host.state / "secret").write_text("value")
    assert host.boot(secret_script(), REFUSALS="2").returncode == 0
    assert host.calls("sleep") == [["10"], ["20"]]
    assert len(host.calls("docker", "create")) == 1


def test_a_trace_of_the_script_shows_no_secret(host: Host) -> None:
    """Even `set -x` before the script prints no value."""
    (host.state / "secret").write_text("hunter2")
    script = secret_script().replace("set -euo pipefail", "set -xeuo pipefail", 1)
    completed = host.boot(script)
    assert completed.returncode == 0
    assert b"+ " in completed.stderr
    assert b"hunter2" not in completed.stderr
    assert base64.b64encode(b"hunter2") not in completed.stderr


@pytest.mark.parametrize(
    ("value", "variables"), [(b"value", {"REFUSALS": "99"}), (b"", {}), (b"a\0b", {})]
)
def test_a_secret_that_cannot_be_fetched_ends_the_job(
    host: Host, value: bytes, variables: dict[str, str]
) -> None:
    """A refused request, an empty value and one with a zero byte start no container, and leave nothing."""
    (host.state / "secret").write_bytes(value)
    assert host.boot(secret_script(), **variables).returncode != 0
    assert host.calls("docker", "create") == []
    assert list((host.state / "root/run/tpucfg").iterdir()) == []


def test_no_secret_is_left_on_the_host(host: Host) -> None:
    """The files of the values are gone once the container has them."""
    (host.state / "secret").write_text("value")
    assert host.boot(secret_script()).returncode == 0
    assert list((host.state / "root/run/tpucfg").iterdir()) == []


def mount_script() -> str:
    """Return the script of a job that mounts its bucket and a folder of another one."""
    mounts = {"/data": "gs://shared/corpus/v2", "/out": "${bucket}"}
    return cloud_tpu.startup_script(job("cloud-tpu", "v2-8", trainer={"mounts": mounts}))


def test_buckets_are_mounted_and_shown_in_the_container(host: Host) -> None:
    """Each bucket is mounted on the host by gcsfuse, which is installed once, and the container shows the mounts."""
    completed = host.boot(mount_script())
    assert completed.returncode == 0, completed.stderr
    root = host.state / "root"
    options = ["--implicit-dirs", "-o", "allow_other", "--file-mode=666", "--dir-mode=777"]
    assert host.calls("gcsfuse") == [
        [*options, "--only-dir=corpus/v2", "shared", f"{root}/mnt/tpucfg/0"],
        [*options, "my-bucket", f"{root}/mnt/tpucfg/1"],
    ]
    (call,) = host.calls("docker", "create")
    mounts = [call[number + 1] for number, word in enumerate(call) if word == "--mount"]
    assert mounts == [
        f"type=bind,source={root}/mnt/tpucfg/0,target=/data,bind-propagation=rslave",
        f"type=bind,source={root}/mnt/tpucfg/1,target=/out,bind-propagation=rslave",
    ]
    assert [call[-2:] for call in host.calls("apt-get") if "install" in call] == [
        ["--yes", "gcsfuse=3.*"]
    ]
    assert host.calls("dpkg") == [["--configure", "-a"]]
    (list_file,) = (root / "etc/apt/sources.list.d").iterdir()
    assert "https://packages.cloud.google.com/apt gcsfuse-" in list_file.read_text()


def test_a_failed_installation_is_repeated(host: Host) -> None:
    """An apt server that fails twice delays the mount by 10 and 20 seconds."""
    assert host.boot(mount_script(), APT_FAILING="4").returncode == 0
    assert host.calls("sleep") == [["10"], ["20"]]


def test_a_bucket_that_cannot_be_mounted_ends_the_job(host: Host) -> None:
    """Without its mounts the program is not started."""
    assert host.boot(mount_script(), APT_FAILING="99").returncode != 0
    assert host.calls("docker", "create") == []
