"""The startup script of Cloud TPU, run by a real bash with stubs of docker, curl and sleep."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs import IMAGE, job, program
from tpucfg.targets import cloud_tpu

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
    """A machine whose docker, curl and sleep only record their arguments."""

    def __init__(self, folder: Path) -> None:
        self.programs, self.calls_folder, self.state = (folder / name for name in ("programs", "calls", "state"))
        for subfolder in (self.programs, self.calls_folder, self.state):
            subfolder.mkdir(parents=True)
        program(self.programs, "docker", DOCKER)
        program(self.programs, "curl", CURL)
        program(self.programs, "sleep", 'printf "%s\\0" "$@" > "$CALLS/$(ls "$CALLS" | wc -l).sleep"')

    def boot(self, script: str, **variables: str) -> "subprocess.CompletedProcess[bytes]":
        """Run the script as the metadata agent does."""
        file = self.state / "startup-script"
        file.write_bytes(script.encode())
        paths = {"CALLS": str(self.calls_folder), "STATE": str(self.state), "PATH": f"{self.programs}:/usr/bin:/bin"}
        return subprocess.run(["/bin/bash", file], env=paths | variables, capture_output=True, check=False)

    def calls(self, name: str, *first_arguments: str) -> list[list[str]]:
        """Return the exact arguments of each call of a program that begins with these arguments, in order."""
        files = sorted(self.calls_folder.glob(f"*.{name}"), key=lambda file: int(file.stem))
        calls = [[word.decode() for word in file.read_bytes().split(b"\0")[:-1]] for file in files]
        return [call for call in calls if call[: len(first_arguments)] == list(first_arguments)]


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """Return a machine that has never booted."""
    return Host(tmp_path)


def script_of(args: Sequence[str] = (), env: Sequence[tuple[str, str]] = (), image: str = IMAGE) -> str:
    """Return the script for these values, without the checks of a spec."""
    return cloud_tpu.startup_script(job("cloud-tpu", "v2-32")._replace(args=tuple(args), env=tuple(env), image=image))


def test_the_container_is_started(host: Host) -> None:
    """A host logs in with its account's token, pulls the image and starts the container with the program's flags."""
    planned_job = job("cloud-tpu", "v2-32", trainer={"env": {"A": "1"}, "args": {"data_dir": "${bucket}/data"}})
    completed = host.boot(cloud_tpu.startup_script(planned_job))
    assert completed.returncode == 0, completed.stderr
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
    ("'", '"', "$(id)", "`id`", "$HOME", "\\", "\n", "; exit 3", "&& false", "{{ x }}", "{% raw %}")
)
VALUES = st.lists(WORDS | HOSTILE | st.builds("".join, st.lists(WORDS | HOSTILE, max_size=3)), max_size=8)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(args=VALUES, env=VALUES)
def test_values_reach_the_container_unchanged(tmp_path: Path, args: list[str], env: list[str]) -> None:
    """Docker gets each flag and variable as one unchanged argument, and bash executes nothing in it."""
    shutil.rmtree(tmp_path)
    host = Host(tmp_path)
    variables = [(f"NAME_{number}", value) for number, value in enumerate(env)]
    completed = host.boot(script_of(args, variables))
    assert completed.returncode == 0, completed.stderr
    (call,) = host.calls("docker", "run")
    env_arguments = [word for key, value in variables for word in ("--env", f"{key}={value}")]
    assert call[7:] == [*env_arguments, IMAGE, *args]


def test_a_host_that_boots_again_starts_nothing(host: Host) -> None:
    """At the second boot of a host the script does not run the program again, and succeeds."""
    script = script_of()
    assert host.boot(script).returncode == 0
    second_boot = host.boot(script)
    assert (second_boot.returncode, len(host.calls("docker", "run")), len(host.calls("docker", "pull"))) == (0, 1, 1)
    assert b"is not started again" in second_boot.stdout


def test_a_pull_that_fails_is_repeated(host: Host) -> None:
    """A registry that fails twice delays the start by 10 and 20 seconds."""
    assert host.boot(script_of(), FAILING="2").returncode == 0
    assert (len(host.calls("docker", "pull")), host.calls("sleep")) == (3, [["10"], ["20"]])


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
def test_only_googles_registries_get_the_token(host: Host, image: str, registry: str | None) -> None:
    """The account's token is sent to Google's registries, and to no other registry."""
    assert host.boot(script_of(image=image)).returncode == 0
    assert [call[-1] for call in host.calls("docker", "login")] == ([registry] if registry else [])
    assert bool(host.calls("curl")) == bool(registry)


def test_the_script_passes_shellcheck() -> None:
    """Shellcheck has no remark about a script with or without login, flags and variables."""
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is missing")
    for script in (script_of(), script_of(["--a=$(b)", "c d"], [("E", "f'g")], "python:3.12")):
        subprocess.run(["shellcheck", "--shell=bash", "-"], input=script.encode(), check=True)
