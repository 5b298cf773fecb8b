"""The start-up script of Compute Engine, run by a real bash: what differs from that of Cloud TPU."""

import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from compute_api import TOKEN, serving_compute
from jobs import job, program
from script_host import RECORD, Host, deadline_of, watchdog_of
from tpucfg.targets import compute_engine

pytestmark = pytest.mark.shell

INSTALL = """
printf "%s\\0" "$@" > "$CALLS/$(ls "$CALLS" | wc -l).apt-get"
[[ $* == *install* ]] || exit "${UPDATE_STATUS:-0}"
[ "$(ls "$CALLS"/*.apt-get | wc -l)" -gt "${APT_FAILING:-0}" ] || exit 100
cp "$STATE/docker" "${0%/*}/docker"
"""
"""The package installs docker, unless too few calls precede."""


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """Return a machine without Docker, which has never booted."""
    host = Host(tmp_path)
    (host.programs / "docker").replace(host.state / "docker")
    program(host.programs, "apt-get", INSTALL)
    # The script must not find a Docker of the machine that runs the test.
    (host.state / "tools").mkdir()
    for tool in {
        path.name: path for folder in ("/bin", "/usr/bin") for path in Path(folder).iterdir()
    }.values():
        if tool.name != "docker":
            (host.state / "tools" / tool.name).symlink_to(tool)
    return host


def boot(
    host: Host, trainer: dict[str, Any] | None = None, size: str = "v6e-4", **variables: str
) -> int:
    """Run the script of a job, and return its status."""
    planned = job("compute-engine", size, environment={"region": "us-east5"}, trainer=trainer or {})
    path = f"{host.programs}:{host.state / 'tools'}"
    completed = host.boot(compute_engine.startup_script(planned), PATH=path, **variables)
    return completed.returncode


def test_docker_is_installed_once(host: Host) -> None:
    """The first boot installs Ubuntu's package, and the next one does not."""
    assert boot(host) == 0
    assert [call[-1] for call in host.calls("apt-get") if "install" in call] == ["docker.io"]
    assert len(host.calls("docker", "create")) == 1
    assert boot(host) == 0
    assert len(host.calls("apt-get")) == 2
    assert ["enable", "--now", "docker"] in host.calls("systemctl")
    assert len(host.calls("docker", "create")) == 1


def test_an_installation_that_fails_is_repeated(host: Host) -> None:
    """A server of packages that fails once delays the start by 10 seconds."""
    assert boot(host, APT_FAILING="2") == 0
    assert host.calls("sleep") == [["10"]]
    assert len(host.calls("docker", "create")) == 1


def test_without_docker_the_script_fails(host: Host) -> None:
    """If it cannot be installed, no program is started, and without a watchdog the next boot tries again."""
    assert boot(host, APT_FAILING="99") != 0
    assert boot(host) == 0
    assert len(host.calls("docker", "create")) == 1


def test_a_list_that_cannot_be_updated_is_no_reason_to_give_up(host: Host) -> None:
    """One bad source fails the update, and Docker is installed from the others."""
    assert boot(host, UPDATE_STATUS="100") == 0
    assert host.calls("sleep") == []
    assert len(host.calls("docker", "create")) == 1


def test_servers_of_packages_that_never_answer_end_an_attempt(host: Host) -> None:
    """A list that cannot be updated in time, as without Cloud NAT, does not hold the script for hours."""
    hanging = INSTALL.replace(
        "[[ $* == *install* ]] ||",
        '[[ $* == *install* ]] || { "$STATE/tools/sleep" 60 && touch "$STATE/waited"; } ||',
    )
    program(host.programs, "apt-get", hanging.replace('"${UPDATE_STATUS:-0}"', '"$?"'))
    program(host.programs, "timeout", 'shift 2; exec "$STATE/tools/timeout" 3 "$@"')
    assert boot(host) == 0
    assert not (host.state / "waited").exists()
    assert len(host.calls("docker", "create")) == 1


def test_a_half_installed_docker_is_completed(host: Host) -> None:
    """After a reboot in the middle of the installation, docker exists and does not answer."""
    (host.programs / "docker").write_bytes((host.state / "docker").read_bytes())
    (host.programs / "docker").chmod(0o755)
    (host.state / "dead").touch()
    program(
        host.programs,
        "systemctl",
        'printf "%s\\0" "$@" > "$CALLS/$(ls "$CALLS" | wc -l).systemctl"\n' + REVIVE,
    )
    assert boot(host) == 0
    order = host.order()
    assert order[: order.index("docker container")] == [
        *("systemctl", "docker info", "dpkg", "apt-get", "apt-get", "systemctl", "docker info")
    ]
    assert len(host.calls("docker", "create")) == 1


REVIVE = '[[ $1 != enable ]] || rm "$STATE/dead"'
"""The service starts, and docker answers."""


def test_a_log_that_refuses_the_first_entries_delays_the_program(host: Host) -> None:
    """Docker starts no container without access to Cloud Logging, and the same container starts when it has it."""
    assert boot(host, UNLOGGED="3") == 0
    assert host.calls("sleep") == [["10"], ["20"], ["40"]]
    assert [len(host.calls("docker", name)) for name in ("create", "start")] == [1, 4]


def test_the_output_goes_to_cloud_logging(host: Host) -> None:
    """Docker sends the output with the job's name as a label, by which the printed command finds it."""
    assert boot(host, {"args": {"a": "1"}}) == 0
    (call,) = host.calls("docker", "create")
    assert {
        "--log-driver=gcplogs",
        "--log-opt=labels=tpucfg-job",
        "--label=tpucfg-job=mnist-dev-v6e-4",
    } <= {*call}
    log = compute_engine.submission(
        job("compute-engine", "v6e-4", environment={"region": "us-east5"})
    ).log
    assert log
    assert 'metadata."tpucfg-job"="mnist-dev-v6e-4"' in log.argv[3]


def test_without_docker_a_bounded_job_has_ended(host: Host) -> None:
    """The watchdog notes the end of a program that cannot start, so that the slice is deleted."""
    watchdog, _, _ = watchdog_of(bounded_script("v6e-4", str(host.state))).partition(
        "\n{ read -r failures"
    )
    program(host.programs, "systemctl", "echo running")
    ended = bash(host, f"{watchdog}\nfailures=0\nattend\ncat {host.state}/ended\n").splitlines()[-1]
    assert ended.split()[0] == "none"


SILENT_CURL = r"""
arguments=()
for argument in "$@"; do
  case $argument in
    20) argument=0.1 ;;
    5) argument=0 ;;
    http*) argument=http://127.0.0.1:$PORT ;;
  esac
  arguments+=("$argument")
done
echo x >> "$STATE/requests"
timeout 60 /usr/bin/curl --noproxy "*" "${arguments[@]}"
status=$?
[ $status != 124 ] || echo "$*" >> "$STATE/hung"
exit $status
"""
"""The real curl, with shorter times, whose every request goes to a server of the test; after a minute it hangs."""


@pytest.mark.parametrize(
    "settings",
    [{}, {"secrets": {"A": "a/1"}, "image": "r.io/i:1"}, {"mounts": {"/data": "${bucket}"}}],
)
def test_a_server_that_never_answers_ends_the_script(host: Host, settings: dict[str, Any]) -> None:
    """A connection that is accepted, but not answered, fails like a refused one: the slice is charged meanwhile."""
    program(host.programs, "curl", SILENT_CURL)
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert boot(host, settings, PORT=str(server.getsockname()[1])) == 0 or settings
    assert (host.state / "requests").exists()
    assert not (host.state / "hung").exists(), (host.state / "hung").read_text()


def bounded_script(size: str, folder: str) -> str:
    """Return the start-up script of a bounded job, with its state in a folder."""
    bounded = {"max_run_duration": "12h"}
    planned = job("compute-engine", size, environment={"region": "us-east5"}, trainer=bounded)
    return compute_engine.startup_script(planned).replace("/var/lib/tpucfg", folder)


def bash(host: Host, text: str) -> str:
    """Run bash without any other Docker, and return what it prints."""
    variables = {"PATH": f"{host.programs}:{host.state / 'tools'}", "CALLS": str(host.calls_folder)}
    completed = subprocess.run(
        ["/bin/bash"], input=text, env=variables, capture_output=True, text=True, check=False
    )
    return completed.stdout


@pytest.mark.parametrize(
    ("size", "collection"), [("v6e-4", "instances"), ("v6e-16", "instanceGroupManagers")]
)
def test_a_bounded_host_deletes_what_it_was_created_by(
    size: str, collection: str, host: Host
) -> None:
    """The request deletes the group, or the only instance; if it is refused, the missing permission is named."""
    script = deadline_of(bounded_script(size, str(host.state)))
    calls = script.replace("\nif [", f"\naccess_token() {{ printf %s {TOKEN}; }}\nset now\nif [", 1)
    program(host.programs, "sleep", f"kill $PPID; {RECORD}")
    path = f"/compute/v1/projects/my-project/zones/us-east5-a/{collection}/mnist-dev-{size}"
    with serving_compute(host.programs) as api:
        api.objects[path] = {}
        noun = "instance" if size == "v6e-4" else "group with its instances"
        assert bash(host, calls) == f"tpucfg: deleting the {noun}: HTTP status 200\n"
        assert api.requests == [("DELETE", path)]
        api.objects.clear()
        assert bash(host, calls) == f"tpucfg: deleting the {noun}: HTTP status 404\n"
        assert host.calls("sleep") == [["30"], ["30"]]
        api.answer = lambda *_: (403, {"error": {"code": 403}})  # type: ignore[method-assign]
        account = "tpu-mnist-dev@my-project.iam.gserviceaccount.com"
        assert f"{account} needs the permission compute.{collection}.delete in the project" in bash(
            host, calls
        )
