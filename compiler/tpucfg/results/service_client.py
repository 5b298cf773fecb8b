"""Ask the service of a job by its own client, without a shell, with a time limit, and with bounded answers.

Nothing that a client does ends the command: a question without a usable answer is a line that names the failure and the
command to try.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any, Final, NamedTuple

from tpucfg.plan import Job
from tpucfg.redaction import redact
from tpucfg.targets.commands import SubmissionError
from tpucfg.targets.live import UNKNOWN, LiveState, Question, live_questions
from tpucfg.text_format import printable

TIME_LIMIT_SECONDS: Final = 30.0
"""The limit of one question."""
MAX_ANSWER_BYTES: Final = 16 << 20
"""A list of the 256 pods of the largest sizes has about 3 MB."""
_ERROR: Final = re.compile(r"^(ERROR|error|Error|Unable)\b", re.MULTILINE)
"""The start of an error of gcloud, and of one of kubectl:
https://github.com/kubernetes/kubectl/blob/v0.34.1/pkg/cmd/util/helpers.go."""
_MAX_ERROR_BYTES: Final = 64 << 10
_MAX_SHOWN: Final = 300
"""Characters of a service's text that are shown."""
_NO_QUESTIONS: Final = {"CLOUDSDK_CORE_DISABLE_PROMPTS": "1"}
"""gcloud offers to enable an API, which would change the project: https://cloud.google.com/sdk/docs/properties."""


class Unanswered(NamedTuple):
    """A question without a usable answer."""

    message: str
    command: str = ""
    """The command to try, as a line for bash; empty if the message has the edit."""


class Answers(NamedTuple):
    """The state of a job, and the questions without a usable answer."""

    state: LiveState
    unanswered: tuple[Unanswered, ...] = ()


class _ClientError(Exception):
    """A client that printed no usable answer."""


def shown(text: str) -> str:
    """Return a text of a service on one line, without credentials, and cut."""
    line = redact(" ".join(text[: 4 * _MAX_SHOWN].split()))
    return printable(line if len(line) <= _MAX_SHOWN else f"{line[:_MAX_SHOWN]}…")


class ServiceClient:
    """Runs the questions about jobs, from several threads, and ends all of them with itself."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._is_closed = False

    def close(self) -> None:
        """End the clients that still run, after which no further one is started."""
        self._is_closed = True
        for process in tuple(self._running):
            _kill(process)

    def ask(self, job: Job) -> Answers:
        """Ask for the state of a job; a question that fails leaves the rest of the state unknown."""
        unanswered: list[Unanswered] = []
        questions = live_questions(job)
        answer: Any = None
        try:
            while True:
                question = questions.send(answer)
                try:
                    answer = self._answer(question)
                except _ClientError as failure:
                    unanswered.append(Unanswered(str(failure), shlex.join(question.argv)))
                    answer = None
        except StopIteration as end:
            return Answers(end.value, tuple(unanswered))
        except SubmissionError as error:
            return Answers(UNKNOWN, (Unanswered(f"{error.problem.message}; {error.problem.help}"),))

    def _answer(self, question: Question) -> Any:
        """Return the text of a log, or the data of another answer; an empty one has no data.

        Raises:
            _ClientError: There is no usable answer.
        """
        text = self._output(question.argv).decode("utf-8", "replace")
        if question.is_log or not text.strip():
            return text if question.is_log else {}
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise _ClientError(f"{question.argv[0]} printed incomplete JSON, or none") from None

    def _output(self, argv: Sequence[str]) -> bytes:
        program = argv[0]
        if shutil.which(program) is None:
            raise _ClientError(f"{program} is not on the PATH: install it")
        with tempfile.TemporaryFile() as errors, self._started(argv, errors) as process:
            expired = threading.Event()

            def expire() -> None:
                expired.set()
                _kill(process)

            timer = threading.Timer(TIME_LIMIT_SECONDS, expire)
            timer.start()
            try:
                output = process.stdout.read(MAX_ANSWER_BYTES + 1) if process.stdout else b""
                if len(output) > MAX_ANSWER_BYTES:
                    raise _ClientError(f"{program} printed more than {MAX_ANSWER_BYTES >> 20} MiB")
                status = process.wait()
            finally:
                timer.cancel()
            if expired.is_set():
                raise _ClientError(f"{program} gave no answer within {TIME_LIMIT_SECONDS:g} seconds")
            if status:
                raise _ClientError(_error_text(program, status, errors))
        return output

    @contextmanager
    def _started(self, argv: Sequence[str], errors: IO[bytes]) -> Iterator["subprocess.Popen[bytes]"]:
        """Start a client in a group of its own, which is killed in the end: gcloud starts further processes."""
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=os.environ | _NO_QUESTIONS,
                start_new_session=True,
            )
        except OSError as error:
            raise _ClientError(f"{argv[0]} cannot be started: {error.strerror or error}") from None
        self._running.add(process)
        try:
            if self._is_closed:
                raise _ClientError(f"{argv[0]} was interrupted")
            yield process
        finally:
            _kill(process)
            process.wait()
            self._running.discard(process)
            if process.stdout:
                process.stdout.close()


def _kill(process: "subprocess.Popen[bytes]") -> None:
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)


def _error_text(program: str, status: int, errors: IO[bytes]) -> str:
    """Return what a client prints as its error, after its warnings."""
    errors.seek(0)
    text = errors.read(_MAX_ERROR_BYTES).decode("utf-8", "replace")
    starts = [match.start() for match in _ERROR.finditer(text)]
    reason = shown(text[starts[-1] :] if starts else text)
    return f"{program}: {reason}" if reason else f"{program} exited with status {status}"
