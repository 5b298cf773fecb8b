"""Start a job as its submission describes, without a shell: run one command, or create several objects in order.

If one of the objects cannot be created, the last one, which alone costs money, is deleted, and the error names those
before it. A command that needs the caller's access token gets it through a pipe.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from tpucfg.cli.start_manifests import (
    NewObject,
    NotCreatedError,
    create_in_order,
    report,
    start_manifests,
)
from tpucfg.refusal import RefusalError
from tpucfg.render.config import Config
from tpucfg.targets import RequestBody
from tpucfg.targets.commands import (
    AUTHORIZATION,
    TOKEN,
    Command,
    Creation,
    Creations,
    Manifests,
    Operation,
    Submission,
)
from tpucfg.targets.objects import json_value

_OK: Final = range(200, 300)
_NOT_FOUND: Final = 404
_REFUSED: Final = frozenset(range(400, 500)) - {408}
"""The statuses after which nothing was created; after a timeout (408), or without an answer, it may have been."""
_PAUSE_SECONDS: Final = 2
"""The pause before a request without an answer is sent again."""


def start_job(submission: Submission, config: Config, render_command: Sequence[str]) -> None:
    """Start a job, and print the commands that watch and delete it.

    Args:
        submission: The commands of the job.
        config: Its config.
        render_command: The command that prints the config, for the line that is printed.

    Raises:
        RefusalError: The job was not started.
    """
    program = submission.start.program
    if shutil.which(program) is None:
        hint = f"install {program}, or print the command without --execute and run it elsewhere"
        raise RefusalError(f"{program} is not on the PATH, and nothing was started", hint)
    start_time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        _start(submission, config, render_command)
    except OSError as error:
        message = f"{program} cannot be started: {error.strerror or error}"
        raise RefusalError(
            message, f"reinstall {program}, or put another one first on the PATH"
        ) from None
    print(f"watch it with:  {submission.watch.bash()}", file=sys.stderr)
    if log := submission.log_since(start_time) if submission.log_since else submission.log:
        print(f"read its log with: {log.bash()}", file=sys.stderr)
    for delete in submission.deletes:
        print(f"delete it with: {delete.bash()}", file=sys.stderr)


def _start(submission: Submission, config: Config, render_command: Sequence[str]) -> None:
    """Run the command with the config on its standard input, or create the objects of the config."""
    start = submission.start
    if isinstance(start, Manifests):
        start_manifests(submission, start, config)
        return
    if isinstance(start, Creations):
        _create_objects(start, config.request_body)
        return
    if start.config_format == "yaml":
        text = config.text
    else:
        text = json.dumps(json_value(config.request_body, config.companions))
    print(f"running: {start.bash(render_command)}", file=sys.stderr)
    sys.stdout.flush()  # before the program writes to the same output
    token = _access_token() if start.token else ""
    if status := _run(start, text, token, capture=False).returncode:
        raise RefusalError(f"{start.argv[0]} exited with status {status}; its own output is above")


# Commands.


def _run(
    command: Command, text: str, token: str, *, capture: bool
) -> "subprocess.CompletedProcess[bytes]":
    """Run a command with a text on its standard input."""
    stdout = subprocess.PIPE if capture else None
    if not command.token:
        return subprocess.run(command.argv, input=text.encode(), stdout=stdout, check=False)
    # The token goes through a pipe, because every process of the machine can read an argument list.
    read_end, write_end = os.pipe()
    os.write(write_end, (AUTHORIZATION % token).encode())
    os.close(write_end)
    argv = command.with_token(f"/dev/fd/{read_end}")
    try:
        return subprocess.run(
            argv, input=text.encode(), stdout=stdout, check=False, pass_fds=(read_end,)
        )
    finally:
        os.close(read_end)


def _access_token() -> str:
    """Return the caller's access token.

    Raises:
        RefusalError: gcloud prints none.
    """
    try:
        return subprocess.run(TOKEN, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        reason = getattr(error, "stderr", None) or str(error)
        raise RefusalError(
            f"no access token, and nothing was started: {reason.strip()}", "run: gcloud auth login"
        ) from None


# Objects.


class _Response(NamedTuple):
    """The answer to a request."""

    status: int
    """The HTTP status; 0 if there was no answer."""
    text: str
    is_object: bool
    """True for JSON as the API sends it; False for a page of a proxy."""
    operation: Operation

    @property
    def error(self) -> str:
        """The error of a request or of its operation; empty if there is none."""
        if self.operation.error or self.status in _OK:
            return self.operation.error
        return f"HTTP status {self.status}" if self.status else "no answer"

    @property
    def is_operation(self) -> bool:
        """True for an operation, even a failed one; False for an error on the way, or a page of a proxy."""
        return self.status in _OK and bool(self.operation.url)


class _Client:
    """Runs the commands of a job's creations with one access token."""

    def __init__(self, creations: Creations) -> None:
        self._creations = creations
        self._token = _access_token()
        self._accepted: set[str] = set()

    def send(self, command: Command, text: str = "") -> _Response:
        """Run a command, and parse the answer and the status that it prints."""
        output = _run(command, text, self._token, capture=True).stdout.decode("utf-8", "replace")
        body, _, status = output.rstrip("\n").rpartition("\n")
        try:
            data: Any = json.loads(body)
        except (ValueError, RecursionError):
            data = None
        return _Response(
            int(status) if status.isascii() and status.isdecimal() else 0,
            body,
            isinstance(data, dict),
            self._creations.operation(data) if isinstance(data, dict) else Operation(),
        )

    def wait(self, answer: _Response, *, only_once: bool = False) -> _Response:
        """Return the last state of an operation: when it has ended, or after the maximum of waits, or after the first.

        A wait that fails decides nothing about the operation, and is repeated.
        """
        url = answer.operation.url
        for _ in range(self._creations.max_waits):
            if not answer.is_operation or answer.operation.is_done or answer.error:
                break
            state = self.send(self._creations.wait(url))
            if state.is_operation:
                answer = state
                if only_once:
                    break
            else:
                time.sleep(_PAUSE_SECONDS)
        return answer

    def create(self, step: Creation, document: Any, *, is_last: bool) -> None:
        """Create an object. Nothing refers to the last one, which may wait for its machines.

        Raises:
            NotCreatedError: It was not created.
            RefusalError: Something may have been created.
        """
        name = f"{step.document} {step.name}"
        answer = self.send(step.create, json.dumps(document))
        if answer.status in _REFUSED:
            raise NotCreatedError(f"{name} was not created: {answer.error}")
        if not answer.is_operation and not answer.operation.error:
            reason = answer.error or "the answer is no operation"
            raise RefusalError(f"{name}: unclear if it was created: {reason}")
        self._accepted.add(step.document)
        answer = self.wait(answer, only_once=is_last)
        if answer.error:
            raise RefusalError(f"{name} could not be created: {answer.error}")
        is_done = answer.operation.is_done
        if not is_done and not is_last:
            raise RefusalError(f"{name} was not created in time")
        report(f"{name}: {'created' if is_done else 'accepted, and still being created'}")

    def delete(self, step: Creation) -> str:
        """Delete an object, wait for the end, and return the reason why it may remain.

        A request that is not answered is repeated.
        """
        answer = self.send(step.undo)
        for _ in range(self._creations.max_waits - 1):
            if answer.is_operation or answer.status in _REFUSED:
                break
            answer = self._send_later(step.undo)
        if answer.status == _NOT_FOUND:
            # A request to create it whose answer was lost may take effect only now.
            answer = self._send_later(step.undo)
        answer = self.wait(answer)
        if answer.status == _NOT_FOUND:
            is_lost = step.document not in self._accepted
            return "not there yet; its request may still take effect" if is_lost else ""
        if answer.error:
            return f"not deleted ({answer.error})"
        return "" if answer.operation.is_done else "still being deleted"

    def _send_later(self, command: Command) -> _Response:
        time.sleep(_PAUSE_SECONDS)
        return self.send(command)


def _create_objects(creations: Creations, body: RequestBody) -> None:
    """Create the objects of a job in order.

    Raises:
        RefusalError: An object could not be created.
    """
    client = _Client(creations)
    last = creations.steps[-1]
    steps = [step for step in creations.steps if not _is_reused(client, step)]
    create_in_order(
        [_new_object(client, step, body[step.document], is_last=step == last) for step in steps],
        lambda: client.delete(last),
    )


def _is_reused(client: _Client, step: Creation) -> bool:
    """Return True if an equal object exists.

    Raises:
        RefusalError: Another object of the name exists, or the API refuses to answer.
    """
    answer = client.send(step.find)
    if answer.status == _NOT_FOUND:
        return False
    if answer.status not in _OK or not answer.is_object:
        reason = answer.error or "the answer is no object"
        raise RefusalError(
            f"{step.document} {step.name} cannot be looked up, nothing started: {reason}"
        )
    if step.content and step.content in answer.text:
        report(f"{step.document} {step.name}: an equal one exists, and is reused")
        return True
    reason = (
        "made from other values or by another release of tpucfg"
        if step.content
        else "so the job may be running"
    )
    message = f"{step.document} {step.name} already exists, {reason}, and was left as it is"
    raise RefusalError(
        message, f"delete it: {step.delete.bash()}, or add --run ID, which is part of names"
    )


def _new_object(client: _Client, step: Creation, document: Any, *, is_last: bool) -> NewObject:
    def create() -> None:
        client.create(step, document, is_last=is_last)

    return NewObject(f"{step.document} {step.name}", step.delete.bash(), create)
