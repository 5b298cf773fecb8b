"""A machine on which the real start-up script runs in bash, with stubs of docker, curl, apt, systemd and others."""

import subprocess
import tempfile
from pathlib import Path

from jobs import program
from tpucfg.targets.hosts import DEADLINE

DOCKER = r"""
printf '%s\0' "$@" > "$CALLS/$(ls "$CALLS" | wc -l).docker"
case "$1" in
  info) [ ! -e "$STATE/dead" ] ;;
  container) cat "$STATE/trainer" ;;
  login) cat > "$STATE/password"; echo "$DOCKER_CONFIG" > "$STATE/config"; echo secret > "$DOCKER_CONFIG/config.json" ;;
  pull) echo x >> "$STATE/pulls"; echo "${REFUSAL:-}" >&2
    [ "$(wc -l < "$STATE/pulls")" -gt "${FAILING:-0}" ] ;;
  create) env -0 > "$STATE/environment"
    [ "$(wc -l < "$STATE/pulls")" -gt "${FAILING:-0}" ] && echo created 0 > "$STATE/trainer" ;;
  start) echo x >> "$STATE/starts"; echo "${REFUSAL:-}" >&2
    [ "$(wc -l < "$STATE/starts")" -gt "${UNLOGGED:-0}" ] && echo exited 255 > "$STATE/trainer" ;;
esac
"""
CURL = r"""
arguments=()
for argument in "$@"; do
  [[ $argument == @/dev/fd/* ]] && argument="pipe: $(<"${argument#@}")"
  arguments+=("$argument")
done
printf '%s\0' "${arguments[@]}" > "$CALLS/$(ls "$CALLS" | wc -l).curl"
case "${!#}" in
  */token) echo '{"access_token":"ya29.of-the-host","expires_in":3599,"token_type":"Bearer"}' ;;
  *:access) echo x >> "$STATE/accesses"
    [ "$(wc -l < "$STATE/accesses")" -gt "${REFUSALS:-0}" ] || exit 22
    printf '{\n  "name": "secrets/s/versions/3",\n  "payload": {\n    "data": "%s",\n    "dataCrc32c": "1"\n  }\n}\n' \
      "$(base64 --wrap=0 <(cat "$STATE/secret" && [ -z "${NAMED:-}" ] || printf %s "${!#}"))" ;;
esac
"""
RECORD = 'printf "%s\\0" "$@" > "$CALLS/$(ls "$CALLS" | wc -l).${0##*/}"'
APT = (
    RECORD
    + """
[[ $* == *install* && $(ls "$CALLS"/*.apt-get | wc -l) -gt ${APT_FAILING:-0} ]] || exit "$(($# == 3 ? 0 : 1))"
cp "$STATE/gcsfuse" "${0%/*}/gcsfuse"
"""
)
"""The package installs the program; calls before the number in APT_FAILING do not."""


def watchdog_of(script: str) -> str:
    """Return the watchdog that a start-up script writes."""
    return script.split("END_OF_WATCHDOG")[1].partition("\n")[2]


def deadline_of(script: str) -> str:
    """Return the script of the deadline's unit: the start-up script up to its use writes it to a folder."""
    functions = script.partition("\nwrite_deadline ")[0]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["/bin/bash", "-c", f'{functions}\nwrite_deadline "$1"', "bash", folder], check=True
        )
        return Path(folder, DEADLINE).read_text(encoding="utf-8")


MOVED = (
    *("run/tpucfg", "mnt/tpucfg", "etc/apt/sources.list.d", "usr/share/keyrings"),
    "sys/kernel/mm/transparent_hugepage",
)
"""Folders of the script that a test must not write to; the files in them are below `state/root`."""


class Host:
    """A machine whose programs only record their arguments; a reboot stops the container with status 255."""

    def __init__(self, folder: Path) -> None:
        self.programs, self.calls_folder, self.state = (
            folder / name for name in ("programs", "calls", "state")
        )
        for subfolder in (self.programs, self.calls_folder, self.state):
            subfolder.mkdir(parents=True)
        program(self.programs, "docker", DOCKER)
        program(self.programs, "curl", CURL)
        program(self.programs, "sleep", RECORD)
        program(self.programs, "apt-get", APT)
        program(self.programs, "dpkg", RECORD)
        program(self.programs, "systemctl", RECORD)
        program(self.state, "gcsfuse", RECORD + '; touch "${!#}/mounted"')
        program(self.programs, "mountpoint", '[ -e "${!#}/mounted" ]')

    def boot(self, script: str, **variables: str) -> "subprocess.CompletedProcess[bytes]":
        """Run the script as the metadata agent does, with its folders outside of the home of root moved."""
        file = self.state / "startup-script"
        for folder in MOVED:
            (self.state / "root" / folder).mkdir(parents=True, exist_ok=True)
            script = script.replace(f"/{folder}/", f"{self.state}/root/{folder}/")
        file.write_bytes(script.encode())
        paths = {
            "CALLS": str(self.calls_folder),
            "STATE": str(self.state),
            "PATH": f"{self.programs}:/usr/bin:/bin",
        }
        return subprocess.run(
            ["/bin/bash", file], env=paths | variables, capture_output=True, check=False
        )

    def calls(self, name: str, *first_arguments: str) -> list[list[str]]:
        """Return the exact arguments of each call of a program that begins with these arguments, in order."""
        files = sorted(self.calls_folder.glob(f"*.{name}"), key=lambda file: int(file.stem))
        calls = [[word.decode() for word in file.read_bytes().split(b"\0")[:-1]] for file in files]
        return [call for call in calls if call[: len(first_arguments)] == list(first_arguments)]

    def order(self) -> list[str]:
        """Return the names of the recorded programs in their order, those of docker with the command."""
        files = sorted(self.calls_folder.iterdir(), key=lambda file: int(file.stem))
        words = [(file.suffix[1:], file.read_bytes().split(b"\0")[0].decode()) for file in files]
        return [f"{name} {first}" if name == "docker" else name for name, first in words]
