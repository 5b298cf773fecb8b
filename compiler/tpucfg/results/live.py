"""The progress of submitted jobs: their state, their steps and their cost so far, as their services state them.

A service is asked by its own client, without a shell, with a time limit, and with bounded answers. Nothing that a
client does ends the command: a question without a usable answer is a line with the failure and the command to try.
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
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from fractions import Fraction
from io import StringIO
from itertools import pairwise
from math import isfinite
from statistics import median
from typing import IO, Any, Final, NamedTuple

from tpucfg.plan import Job
from tpucfg.redaction import redact
from tpucfg.results.cost import SECONDS_PER_HOUR, price_per_hour, run_limit
from tpucfg.results.log_metrics import (
    SHOWN_STEP,
    LogObject,
    LogTimestamp,
    TruncatedLogError,
    iter_log_objects,
    short_lines,
)
from tpucfg.spec import Project
from tpucfg.spec.presets import StepLine
from tpucfg.targets import RequestBody
from tpucfg.targets.commands import SubmissionError
from tpucfg.targets.live import LOG_LINES, UNKNOWN, LiveState, Question, live_questions
from tpucfg.text_format import printable

# The questions to a service, by its own client.

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


class LiveAnswers(NamedTuple):
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

    def ask(self, job: Job) -> LiveAnswers:
        """Ask for the state of a job; a question that fails leaves the rest of the state unknown."""
        unanswered: list[Unanswered] = []
        questions = live_questions(job)
        if questions is None:
            return LiveAnswers(
                UNKNOWN, (Unanswered(f"{job.target} cannot be asked about its jobs"),)
            )
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
            return LiveAnswers(end.value, tuple(unanswered))
        except SubmissionError as error:
            return LiveAnswers(
                UNKNOWN, (Unanswered(f"{error.problem.message}; {error.problem.help}"),)
            )

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
                raise _ClientError(
                    f"{program} gave no answer within {TIME_LIMIT_SECONDS:g} seconds"
                )
            if status:
                raise _ClientError(_error_text(program, status, errors))
        return output

    @contextmanager
    def _started(
        self, argv: Sequence[str], errors: IO[bytes]
    ) -> Iterator["subprocess.Popen[bytes]"]:
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


# The jobs.

_JOBS_AT_ONCE: Final = 8


class LiveJob(NamedTuple):
    """One job with its state, its progress and its cost."""

    job: Job
    state: LiveState
    unanswered: tuple[Unanswered, ...]
    """The questions that its service did not answer."""
    step: int | None
    """The last step that its log has."""
    step_seconds: Fraction | None
    """The time of the median step at the end of the log."""
    usd: Fraction | None
    """The price of the machines until now, or until the end; None before their start, and without a price."""
    max_usd: Fraction | None
    """The most that the job can cost; None if nothing bounds it, and without a price."""


def live_jobs(
    project: Project, bodies: Sequence[tuple[Job, RequestBody]], now: datetime
) -> list[LiveJob]:
    """Ask the services about jobs, several at once, and return what is known of each, in their order.

    Args:
        project: The project.
        bodies: The jobs, with their request bodies, which have the limits of the runs.
        now: The time until which a running job is charged.
    """
    # Closed before the pool, which waits for its threads: an interrupt ends the clients at once.
    with ThreadPoolExecutor(_JOBS_AT_ONCE) as pool, closing(ServiceClient()) as client:
        asked = [pool.submit(client.ask, job) for job, _ in bodies]
        answers = [each.result() for each in asked]
    return [
        live_job(project, job, body, answer, now)
        for (job, body), answer in zip(bodies, answers, strict=True)
    ]


def live_job(
    project: Project, job: Job, body: RequestBody, answers: LiveAnswers, now: datetime
) -> LiveJob:
    """Return the progress and the cost of a job, from the answers of its service."""
    state, unanswered = answers
    state = state._replace(service_state=shown(state.service_state), reason=shown(state.reason))
    preset = project.training.preset
    form = preset.step_line if preset else SHOWN_STEP
    progress = log_progress(state.log or "", form)
    if not progress.is_whole:
        unanswered += (
            Unanswered(
                "the client printed half a list of log entries: the last steps may be missing"
            ),
        )
    elif progress.step is None and (state.log or "").strip() not in ("", "[]"):
        example = (
            "completed step: 100, seconds: …"
            if preset
            else 'step 100 of 4,000: …, or {"step": 100}'
        )
        message = f"none of the last {LOG_LINES} lines of its log has a step: print lines such as {example}"
        unanswered += (Unanswered(message),)
    hourly = price_per_hour(job.slice, project.prices, job.capacity.kind)
    limit = run_limit(job, body).hours
    return LiveJob(
        job,
        state,
        unanswered,
        progress.step,
        progress.seconds,
        usd=None
        if hourly is None or state.started is None
        else hourly * _hours(state.started, state.ended or now),
        max_usd=None if hourly is None or limit is None else hourly * limit,
    )


def _hours(start: datetime, end: datetime) -> Fraction:
    return Fraction(max(0, round((end - start).total_seconds())), SECONDS_PER_HOUR)


# The progress in the end of a log: the last step, and the time of a step.


_STEP: Final = "step"
_MAX_STEP: Final = 10**12


class LogProgress(NamedTuple):
    """The progress that a log shows."""

    step: int | None = None
    """The latest step; None if no line has one."""
    seconds: Fraction | None = None
    """The time of the median step; None if no two lines tell."""
    is_whole: bool = True
    """False for a list of entries that breaks off."""


def log_progress(log: str, form: StepLine) -> LogProgress:
    """Return the progress in a log: of lines of steps in a form, or of lines of JSON with a `step`."""
    lines: list[LogObject] = []
    is_whole = True
    try:
        for each in iter_log_objects(short_lines(StringIO(log)), (_STEP,), form):
            step = each.data.get(_STEP)
            if isinstance(step, float) and isfinite(step) and 0 <= step <= _MAX_STEP:
                lines.append(each)
    except TruncatedLogError:
        is_whole = False
    if not lines:
        return LogProgress(is_whole=is_whole)
    # Stable: lines without a time, or of one entry, keep their order. gcloud prints the newest entries first.
    lines.sort(key=lambda line: line.timestamp)
    return LogProgress(int(lines[-1].data[_STEP]), _step_seconds(lines, form.warm_up), is_whole)


def _seconds(each: LogObject) -> float | None:
    value: Any = each.data.get("seconds") if each.is_step else None
    return value if isinstance(value, float) and 0 < value < _MAX_STEP else None


def _step_seconds(lines: list[LogObject], warm_up: int) -> Fraction | None:
    """Return the time of the median step: as printed, or from the times of lines whose steps follow each other.

    A median leaves out single steps that compile; a restart begins at an earlier step.
    """
    printed = [
        seconds for line in lines if (seconds := _seconds(line)) and line.data[_STEP] >= warm_up
    ]
    between = [
        (after.timestamp.moment - before.timestamp.moment).total_seconds() / steps
        for before, after in pairwise(line for line in lines if line.timestamp > LogTimestamp())
        if (steps := int(after.data[_STEP]) - int(before.data[_STEP])) > 0
    ]
    times = printed or between
    return (
        Fraction(median(times)).limit_denominator(_MAX_STEP)
        if times and median(times) > 0
        else None
    )
