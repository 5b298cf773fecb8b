import os
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from jobs import program
from loopback import address, serving
from tpucfg.targets import Command
from tpucfg.targets.interface import AUTHORIZATION

SECRET = "ya29.token-of-the-test"  # noqa: S105 - no secret of anything


class Recorder(BaseHTTPRequestHandler):
    """Keeps what is sent to it."""

    def do_POST(self) -> None:
        """Keep the request and say so."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen = (self.headers["Authorization"], body)  # type: ignore[attr-defined] # the server is the test's
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Keep quiet."""


@pytest.fixture
def server() -> Iterator[Any]:
    """A server of this machine, with the last request in `seen`."""
    with serving(HTTPServer(("127.0.0.1", 0), Recorder)) as made:
        yield made


@pytest.fixture
def post(server: HTTPServer) -> Command:
    """A command that posts the config to the server, with the token."""
    curl = ("curl", "--fail", "--silent", "--show-error", "--noproxy", "*")
    queued = f"{address(server)}/v2/queuedResources?queuedResourceId=a"
    return Command((*curl, "--data-binary", "@-", queued), reads_config=True, config_format="json", token=True)


def test_the_pasted_line_sends_config_and_token(server: Any, post: Command, tmp_path: Path) -> None:
    """Pasted into bash, the line sends what the config command prints, with the token that gcloud prints."""
    program(tmp_path, "gcloud", f"[ \"$*\" = 'auth print-access-token' ] && echo {SECRET}")
    program(tmp_path, "tpucfg", 'printf %s "$*"')
    line = post.bash(["tpucfg", "render", "--spec", "it's mine.yaml"])
    subprocess.run(["bash", "-c", line], check=True, env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert server.seen == (f"Bearer {SECRET}", b"render --spec it's mine.yaml")


def test_the_pasted_line_keeps_the_token_out_of_argument_lists(post: Command, tmp_path: Path) -> None:
    """No program that the line starts gets the token as an argument, where any process could read it."""
    program(tmp_path, "gcloud", f"echo {SECRET}")
    program(tmp_path, "tpucfg", "echo '{}'")
    program(tmp_path, "curl", 'printf "%s\\n" "$@" > "$SEEN"; cat "${@: -1:1}" 2>/dev/null; cat > /dev/null')
    seen = tmp_path / "seen"
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "SEEN": str(seen)}
    subprocess.run(["bash", "-c", post.bash(["tpucfg", "render"])], check=True, env=environment)
    assert "--header" in seen.read_text(encoding="utf-8")
    assert SECRET not in seen.read_text(encoding="utf-8")


def test_without_a_shell_the_token_comes_through_a_pipe(server: Any, post: Command) -> None:
    """Started without a shell, the same command sends the same, with the token from an inherited pipe."""
    reading, writing = os.pipe()
    os.write(writing, (AUTHORIZATION % SECRET).encode())
    os.close(writing)
    argv = post.with_token(f"/dev/fd/{reading}")
    subprocess.run(argv, input=b"{}", check=True, pass_fds=(reading,))
    os.close(reading)
    assert SECRET not in " ".join(argv)
    assert server.seen == (f"Bearer {SECRET}", b"{}")


def test_a_command_without_token_or_config_is_its_arguments() -> None:
    """Any other command is its arguments, quoted where bash would take them apart."""
    command = Command(("kubectl", "get", "a b", "$HOME"))
    assert command.bash() == "kubectl get 'a b' '$HOME'"
    assert command.with_token("/dev/fd/3") == command.argv
