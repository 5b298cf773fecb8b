"""Start a job by kubectl: look for what it needs, ask the server about every object, and create them in order.

Nothing is created until the server has accepted all of it in a dry run. If an object cannot be created then, no further
one is, unlike with kubectl itself, and the error names those before it.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from tpucfg.cli.exit_codes import print_error
from tpucfg.refusal import RefusalError
from tpucfg.render.config import Config
from tpucfg.targets.commands import Command, Manifest, Manifests, Requirement, Submission
from tpucfg.targets.interface import RequestBody
from tpucfg.text_format import listed

_Object = tuple[Manifest, RequestBody]

_DELETE_OPTIONS: Final = ("--ignore-not-found", "--timeout=60s")
_WARNING: Final = "Warning: "
_ANSWER: Final = re.compile(
    r"(?:Error from server(?: \((?P<reason>\w+)\))?: )?(?:error when \w+ \"STDIN\": )?(?P<text>.+)",
    re.DOTALL,
)
"""An error of the server as kubectl prints it: https://github.com/kubernetes/kubectl/blob/v0.34.1/pkg/cmd/util/helpers.go."""
_FROM_SERVER: Final = re.compile(
    r"Error from server|^The \w+ \"[^\n]*\" is invalid|no matches for kind|doesn't have a resource type",
    re.MULTILINE,
)
"""The errors after which another request may succeed; without one of them, the server was not reached."""
_NO_PERMISSION: Final = re.compile(r"cannot \w+ resource")
"""Matches the refusal of a missing role; a quota or a webhook that refuses an object is Forbidden, too."""
_NO_KIND: Final = re.compile(
    r"no matches for kind|doesn't have a resource type|could not find the requested resource \(post"
)
"""Matches the answers about a kind without its definition; the last one where kubectl knew it a moment ago."""
_NO_DRY_RUN: Final = "does not support dry run"
_REFUSALS: Final = (
    (
        re.compile(r"namespaces \"(?P<namespace>[^\"]*)\" not found"),
        "the cluster has no namespace {namespace}",
        "create it: {cluster} create namespace {namespace}",
    ),
    (_NO_KIND, "the cluster does not know the kind {kind}", "{install}"),
    (
        _NO_PERMISSION,
        "you may not create {name}: {error}",
        "ask the cluster's administrators for a role",
    ),
    (
        re.compile("exceeded quota"),
        "the cluster refuses {name}: {error}",
        "look at the quota: {in_namespace} describe resourcequota",
    ),
    (re.compile(""), "the cluster refuses {name}: {error}", ""),
)
"""The answers of a server that refuses an object, each with the problem and what solves it; the first that matches."""


def start_manifests(submission: Submission, start: Manifests, config: Config) -> None:
    """Start a job, or raise RefusalError, which names what this call has created and left."""
    bodies = {str(body["kind"]): body for body in config.documents}
    objects = [(step, bodies[step.kind]) for step in start.steps]
    questions = _Questions(submission)
    try:
        objects = [*questions.missing(start.requirements), *objects]
        questions.look_for_run(start.same_run, start.steps[-1])
        questions.ask_for(
            objects, start.trials(config.request_body), goes_on=start.same_run is not None
        )
    except RefusalError as error:
        raise RefusalError(f"{error}; nothing was created", error.help) from None
    questions.raise_problems()
    create_in_order([_new_object(*each) for each in objects], lambda: _delete(start.steps[-1]))


class _KubectlResult(NamedTuple):
    """The answer to a command."""

    output: str
    reason: str = ""
    error: str = ""
    """The text of the error on one line; empty if there is none."""
    warnings: tuple[str, ...] = ()


def _run(argv: Sequence[str], body: RequestBody | None = None) -> _KubectlResult:
    """Run kubectl, and parse what it prints.

    Raises:
        RefusalError: The server was not reached.
    """
    text = b"" if body is None else json.dumps(body).encode()
    completed = subprocess.run(argv, input=text, capture_output=True, check=False)
    output = completed.stdout.decode("utf-8", "replace").strip()
    lines = completed.stderr.decode("utf-8", "replace").strip().splitlines()
    warnings = tuple(line.removeprefix(_WARNING) for line in lines if line.startswith(_WARNING))
    error = "\n".join(line for line in lines if not line.startswith(_WARNING))
    if not completed.returncode:
        return _KubectlResult(output, warnings=warnings)
    error = error or f"{argv[0]} exited with status {completed.returncode}"
    if not _FROM_SERVER.search(error):
        raise RefusalError(f"the cluster does not answer: {_one_line(error)}")
    match = _ANSWER.fullmatch(error)
    reason, answer = (match["reason"] or "", match["text"]) if match else ("", error)
    return _KubectlResult(output, reason, _one_line(answer), warnings)


def _one_line(text: str) -> str:
    return " ".join(text.split())


class _Questions:
    """The questions to the cluster before anything is created. Problems are collected, notes are printed."""

    def __init__(self, submission: Submission) -> None:
        self._submission = submission
        self._problems: dict[str, str] = {}
        self._notes: set[str] = set()
        self._existing: list[Manifest] = []

    def missing(self, requirements: Sequence[Requirement]) -> Iterator[_Object]:
        """Look for each requirement, and yield the objects that are created because they are missing."""
        for requirement in requirements:
            lines = self._lines(requirement.find, requirement.name)
            if lines is None or len(lines) >= requirement.number:
                continue
            if requirement.remedy:
                self._note(f"{requirement.name} is missing: it is created before the job")
                yield requirement.remedy
            elif requirement.is_note:
                labels = next(
                    (word for word in requirement.find.argv if word.startswith("--selector=")), ""
                )
                count = f"{len(lines) or 'no'} {requirement.name} now match {labels}"
                needed = f"the job needs {requirement.number}: {requirement.consequence}; {requirement.fix}"
                self._note(f"{count}, and {needed}")
            else:
                self._problems[f"{requirement.name} is missing: {requirement.consequence}"] = (
                    requirement.fix
                )

    def look_for_run(self, find: Command | None, job: Manifest) -> None:
        """Look for another job of the same run that has not ended: two would write to one folder."""
        kind, _, own = job.name.partition("/")
        for line in (find and self._lines(find, "other jobs of the run")) or ():
            name, *end = line.split()
            if end == ["<none>"] and name != own:
                fix = f"delete it: {job.delete.bash().removesuffix(own)}{name}; or name another run with --run"
                self._problems[
                    f"{kind}/{name} is of the same run, and writes to the same folder"
                ] = fix

    def _lines(self, find: Command, name: str) -> list[str] | None:
        """Return one line for each object that a command finds; None after an error, which is a note."""
        answer = _run(find.argv)
        if answer.error and not _NO_KIND.search(answer.error):
            self._note(f"{name} cannot be looked up: {answer.error}")
            return None
        return answer.output.splitlines()

    def ask_for(
        self, objects: Sequence[_Object], trials: Sequence[RequestBody], *, goes_on: bool
    ) -> None:
        """Ask the server about all objects, and about those that are never created."""
        for step, body in objects:
            answer = _dry_run(step.create, body)
            if answer.reason == "AlreadyExists":
                self._existing.append(step)
            else:
                self._judge(step.name, answer, step.kind, step.install)
        job = objects[-1][0]
        self._judge_existing(job, goes_on=goes_on)
        for body in trials:
            answer, kind = _dry_run(job.create, body), body["kind"]
            if _NO_PERMISSION.search(answer.error):
                self._note(
                    f"the pods were not checked, because you may not create a {kind}: {answer.error}"
                )
            else:
                self._judge(f"the pods' {kind}", answer, kind)

    def _judge(self, name: str, answer: _KubectlResult, kind: str, install: str = "") -> None:
        for warning in answer.warnings:
            self._note(f"{name}: {warning}")
        if _NO_DRY_RUN in answer.error:
            self._note(f"{name} was not checked: {answer.error}")
        elif answer.error:
            words = self._submission.watch.argv
            values = {"name": name, "kind": kind, "install": install, "error": answer.error}
            values |= {"cluster": " ".join(words[:2]), "in_namespace": " ".join(words[:3])}
            answers = (
                (pattern.search(answer.error), problem, fix) for pattern, problem, fix in _REFUSALS
            )
            match, problem, fix = next(row for row in answers if row[0])
            values |= match.groupdict() if match else {}
            self._problems[problem.format(**values)] = fix.format(**values)

    def _judge_existing(self, job: Manifest, *, goes_on: bool) -> None:
        if not self._existing:
            return
        is_there = job in self._existing
        state = (
            ", so the job may be running, and was left as it is"
            if is_there
            else ", left by an earlier job"
        )
        watch = f"watch it: {self._submission.watch.bash()}; or " if is_there else ""
        deletion = "; ".join(step.delete.bash() for step in reversed(self._existing))
        # A run that goes on keeps its name: another one would begin at step 0.
        rename = "" if goes_on else "; or add --run ID, which is in names"
        names = listed([step.name for step in self._existing])
        self._problems[f"{names} already exists{state}"] = f"{watch}delete it: {deletion}{rename}"

    def raise_problems(self) -> None:
        """Print the problems.

        Raises:
            RefusalError: There is one.
        """
        for message, fix in self._problems.items():
            print_error(message, fix)
        if self._problems:
            raise RefusalError("nothing was created")

    def _note(self, text: str) -> None:
        if text not in self._notes:
            self._notes.add(text)
            report(f"note: {text}")


def _dry_run(create: Command, body: RequestBody) -> _KubectlResult:
    return _run((*create.argv, "--dry-run=server", "--output=name"), body)


# Creation in order; the last object is what is charged, so it is deleted if it cannot be created.


class NotCreatedError(RefusalError):
    """Raised for an object that does not exist, or that another command has created."""


class NewObject(NamedTuple):
    """An object and its creation."""

    name: str
    deletion: str
    """The command that deletes it, to copy."""
    create: Callable[[], None]
    """Raises NotCreatedError if nothing was created; RefusalError if something may have been."""


def create_in_order(objects: Sequence[NewObject], delete_last: Callable[[], str]) -> None:
    """Create objects in order.

    Args:
        objects: The objects. The last one costs money, and the others are free.
        delete_last: Deletes the last one, and returns the reason why it may remain; empty if it is gone for good.

    Raises:
        RefusalError: One could not be created. The error names those that this call leaves.
    """
    # Printed before anything is created: whatever ends this process then, the user knows what to delete.
    report(_deletions("if this is killed, delete what it leaves:", objects))
    last = objects[-1]
    sent: list[NewObject] = []
    try:
        for each in objects:
            sent.append(each)  # before the request, as an answer may be lost
            try:
                each.create()
            except NotCreatedError:
                sent.pop()
                raise
    except RefusalError as error:
        left = _left(sent, last, delete_last)
        if not left:
            raise RefusalError(f"{error}; nothing is left of this submission") from None
        names = listed([each.name for each in left])
        # The last line of the output names what is charged.
        charge = f"{last.name} is charged while it exists" if last in left else "it costs nothing"
        commands = "; ".join(each.deletion for each in reversed(left))
        raise RefusalError(
            f"{error}; not deleted: {names}", f"{charge}; delete: {commands}"
        ) from None
    except BaseException:
        if left := _left(sent, last, delete_last):
            report(_deletions("not deleted; run:", left))
        raise


def _left(
    sent: Sequence[NewObject], last: NewObject, delete_last: Callable[[], str]
) -> Sequence[NewObject]:
    """Delete the last object if its creation was sent, and return the objects that may exist."""
    if last not in sent:
        return sent
    # The commands are printed first, as this may be killed.
    report(_deletions(f"deleting {last.name}; if this is interrupted, run:", sent))
    reason = delete_last()
    report(f"{last.name}: {reason or 'deleted'}")
    return sent if reason else sent[:-1]


def _deletions(title: str, objects: Sequence[NewObject]) -> str:
    """Return the commands that delete objects, from the last to the first."""
    return "\n".join([title, *(f"  {each.deletion}" for each in reversed(objects))])


def report(text: str) -> None:
    """Print a line on stderr."""
    # A closed stderr must end neither the start in the middle nor the deletion.
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)


# The objects of a cluster.


def _new_object(step: Manifest, body: RequestBody) -> NewObject:
    def create() -> None:
        answer = _run(step.create.argv, body)
        message = f"{step.name} was not created: {answer.error}"
        if answer.reason == "AlreadyExists":
            raise NotCreatedError(message)  # another submission was faster
        if answer.error:
            raise RefusalError(message)
        report(f"{step.name}: created")

    return NewObject(step.name, step.delete.bash(), create)


def _delete(step: Manifest) -> str:
    """Delete an object, and return the reason why it may remain."""
    try:
        error = _run((*step.delete.argv, *_DELETE_OPTIONS)).error
    except RefusalError as unreachable:
        error = str(unreachable)
    return error and f"not deleted ({error})"
