"""Create the objects of a job one after the other, and delete them again if one of them fails."""

import json
import sys
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from tpucfg.cli.exit_codes import ERRORS, CommandExit
from tpucfg.cli.run_command import access_token, output_of
from tpucfg.targets import Command, RequestBody
from tpucfg.targets.creations import Creation, Creations, wait_command

_MAX_WAITS: Final = 5
"""The waits of two minutes for an object that another one refers to."""
_OK: Final = range(200, 300)
_NOT_FOUND: Final = 404


class _Answer(NamedTuple):
    """The answer to a request."""

    status: int
    """The HTTP status; 0 if there was no answer."""
    data: dict[str, Any]

    @property
    def error(self) -> str:
        """The error of a request or of its operation; empty if there is none."""
        error = self.data.get("error") or {}
        messages = [str(each.get("message")) for each in (*error.get("errors", ()), error) if each.get("message")]
        if not messages and self.status not in _OK:
            return f"HTTP status {self.status}" if self.status else "no answer"
        return messages[0] if messages else ""


class _Client:
    """Runs commands with one access token."""

    def __init__(self) -> None:
        self._token = access_token()

    def send(self, command: Command, text: str = "") -> _Answer:
        """Run a command, and parse the answer and the status that it prints."""
        body, _, status = output_of(command, text, self._token).rstrip("\n").rpartition("\n")
        try:
            data = json.loads(body)
        except ValueError:
            data = {}
        return _Answer(
            int(status) if status.isascii() and status.isdecimal() else 0, data if isinstance(data, dict) else {}
        )

    def wait(self, operation: _Answer, waits: int) -> _Answer:
        """Return an operation when it has ended, or after a number of waits."""
        for _ in range(waits):
            url = operation.data.get("selfLink")
            if operation.data.get("status") == "DONE" or operation.error or not url:
                break
            operation = self.send(wait_command(url))
        return operation


def create_objects(creations: Creations, body: RequestBody) -> None:
    """Create the objects of a job in order.

    Raises:
        CommandExit: An object could not be created; those that this call created before are deleted.
    """
    client = _Client()
    created: list[Creation] = []
    try:
        for step in creations.steps:
            if _is_reused(client, step):
                print(f"{step.document} {step.name}: an equal one exists, and is reused", file=sys.stderr)
            else:
                _create(client, step, body[step.document], created, is_last=step == creations.steps[-1])
    except BaseException:
        _delete(client, created)
        raise


def _is_reused(client: _Client, step: Creation) -> bool:
    """Return True if an equal object exists.

    Raises:
        CommandExit: Another object of the name exists, or the API refuses to answer.
    """
    if not step.content:
        return False
    answer = client.send(step.find)
    if answer.status == _NOT_FOUND:
        return False
    if answer.status not in _OK:
        raise CommandExit(ERRORS, f"{step.document} {step.name} cannot be looked up: {answer.error}")
    if answer.data.get("description") != step.content:
        message = f"another {step.document} of the name {step.name} exists, and was left as it is"
        raise CommandExit(ERRORS, message, f"delete it: {step.undo.bash()}, or add --run ID, which is part of names")
    return True


def _create(client: _Client, step: Creation, document: Any, created: list[Creation], *, is_last: bool) -> None:
    """Create an object and wait for it; no other object refers to the last one, which may wait for its machines."""
    operation = client.send(step.create, json.dumps(document))
    if not operation.error:
        created.append(step)
        operation = client.wait(operation, 1 if is_last else _MAX_WAITS)
    if operation.error:
        raise CommandExit(ERRORS, f"{step.document} {step.name} was not created: {operation.error}")
    is_done = operation.data.get("status") == "DONE"
    if not is_done and not is_last:
        raise CommandExit(ERRORS, f"{step.document} {step.name} was not created in time")
    print(f"{step.document} {step.name}: {'created' if is_done else 'still being created'}", file=sys.stderr)


def _delete(client: _Client, created: Sequence[Creation]) -> None:
    """Delete objects from the last to the first, and print what could not be deleted."""
    for step in reversed(created):
        answer = client.wait(client.send(step.undo), _MAX_WAITS)
        is_gone = answer.status == _NOT_FOUND or not answer.error
        result = "deleted again" if is_gone else f"not deleted ({answer.error}); delete it: {step.undo.bash()}"
        print(f"{step.document} {step.name}: {result}", file=sys.stderr)
