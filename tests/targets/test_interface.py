"""The commands of a submission: pasted into bash, and run without a shell, with a token that no argument shows."""

import os
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from jobs import program
from loopback import address, serving
from tpucfg.targets.commands import AUTHORIZATION, Command

SECRET = "ya29.token-of-the-test"  # noqa: S105 - a dummy


class Recorder(BaseHTTPRequestHandler):
    """Records the last request in the server's attribute `received`."""

    def do_POST(self) -> None:
        """Record the request, and answer with success."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.received = (self.headers["Authorization"], body)  # type: ignore[attr-defined] # the server is the test's
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@pytest.fixture
def server() -> Iterator[Any]:
    """Run a local server that records the last request."""
    with serving(HTTPServer(("127.0.0.1", 0), Recorder)) as http_server:
        yield http_server


@pytest.fixture
def post(server: HTTPServer) -> Command:
    """Return a command that posts the config to the server, with the token."""
    curl = ("curl", "--fail", "--silent", "--show-error", "--noproxy", "*")
    queued = f"{address(server)}/v2/queuedResources?queuedResourceId=a"
    return Command(
        (*curl, "--data-binary", "@-", queued), reads_config=True, config_format="json", token=True
    )


def test_the_pasted_line_sends_config_and_token(server: Any, post: Command, tmp_path: Path) -> None:
    """Pasted into bash, the line sends what the config command prints, with the token that gcloud prints."""
    program(tmp_path, "gcloud", f"[ \"$*\" = 'auth print-access-token' ] && echo {SECRET}")
    program(tmp_path, "tpucfg", 'printf %s "$*"')
    line = post.bash(["tpucfg", "render", "--spec", "it's mine.yaml"])
    subprocess.run(
        ["bash", "-c", line],
        check=True,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    assert server.received == (f"Bearer {SECRET}", b"render --spec it's mine.yaml")


def test_the_pasted_line_keeps_the_token_out_of_argument_lists(
    post: Command, tmp_path: Path
) -> None:
    """No program that the line starts gets the token as an argument, where any process could read it."""
    program(tmp_path, "gcloud", f"echo {SECRET}")
    program(tmp_path, "tpucfg", "echo '{}'")
    program(
        tmp_path,
        "curl",
        'printf "%s\\n" "$@" > "$ARGUMENTS"; cat "${@: -1:1}" 2>/dev/null; cat > /dev/null',
    )
    arguments = tmp_path / "arguments"
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "ARGUMENTS": str(arguments),
    }
    subprocess.run(["bash", "-c", post.bash(["tpucfg", "render"])], check=True, env=environment)
    assert "--header" in arguments.read_text(encoding="utf-8")
    assert SECRET not in arguments.read_text(encoding="utf-8")


def test_without_a_shell_the_token_is_read_from_a_pipe(server: Any, post: Command) -> None:
    """Without a shell, the command sends equal data, and reads the token from an inherited pipe."""
    read_end, write_end = os.pipe()
    os.write(write_end, (AUTHORIZATION % SECRET).encode())
    os.close(write_end)
    argv = post.with_token(f"/dev/fd/{read_end}")
    subprocess.run(argv, input=b"{}", check=True, pass_fds=(read_end,))
    os.close(read_end)
    assert SECRET not in " ".join(argv)
    assert server.received == (f"Bearer {SECRET}", b"{}")


def test_a_command_without_token_or_config_is_its_arguments() -> None:
    """A command without token and config is printed as its arguments, quoted where bash requires it."""
    command = Command(("kubectl", "get", "a b", "$HOME"))
    assert command.bash() == "kubectl get 'a b' '$HOME'"
    assert command.with_token("/dev/fd/3") == command.argv
