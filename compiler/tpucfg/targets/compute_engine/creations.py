"""The requests that create the objects of a job, and their operations, as documented for compute.v1.

A request is answered by an operation, which may fail after the request was accepted. A request to `/wait` below the
operation's URL returns it when it has ended, or after two minutes, with its state as it then is:
https://cloud.google.com/compute/docs/reference/rest/v1/zoneOperations/wait.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tpucfg.plan.job import Job
from tpucfg.targets.compute_engine.paths import (
    API,
    DOCUMENTS,
    GROUP,
    INSTANCE,
    POLICY,
    TEMPLATE,
    collection_path,
    object_url,
    place_of,
)
from tpucfg.targets.creations import Creation, Creations, Operation
from tpucfg.targets.interface import Command, RequestBody

_CURL: Final = ("curl", "--silent", "--show-error", "--max-time", "180")
"""Prints the answer, of a refused request too; a wait takes two minutes."""
_WITH_STATUS: Final = (*_CURL, "--write-out", "\\n%{http_code}\\n")
_JSON: Final = ("--header", "Content-Type: application/json")
_MAX_WAITS: Final = 5
_COMMAND_GROUPS: Final = {
    POLICY: ("resource-policies",),
    TEMPLATE: ("instance-templates",),
    GROUP: ("instance-groups", "managed"),
    INSTANCE: ("instances",),
}
"""The words of `gcloud compute` for each kind of object."""
_BASH: Final = """\
fail() {{ printf '%s\\n' "$@" >&2; exit 1; }}
# exists PATH [CONTENT]: an object with this content is reused, and any other one ends the start.
exists() {{
  local answer; answer=$(request "$api/$1")
  case $answer in
    '{{'*200)
      [[ ${{2-}} ]] || fail "$1 already exists, so the job may be running; it was left as it is"
      [[ $answer == *"$2"* ]] || fail "$1 already exists with other values, and was left: delete it, or use --run" ;;
    *404) return 1 ;;
    *) fail "$answer" "$1 cannot be looked up, and was not created" ;;
  esac
}}
# create OBJECT COLLECTION [DONE]: post it, and wait for its operation, for DONE up to {waits} times two minutes.
create() {{
  local answer document operation
  document=$(render --format json --document "$1") || fail "$1 was not created"
  answer=$(request --data-binary @- "$api/$2" <<< "$document")
  operation=$(sed -n 's|^ *"selfLink": "\\(.*\\)".*|\\1|p' <<< "$answer")
  case $operation$answer in
    http*200) ;;
    *409) fail "$answer" "$1 was not created: another start has made one, so do not delete it" ;;
    *400 | *401 | *403 | *404 | *429) fail "$answer" "$1 was not created" ;;
    *) fail "$answer" "$1 may have been created, or be created later: look at it, or delete it" ;;
  esac
  for _ in {tries}; do
    answer=$(request --data '' "$operation/wait")
    case $answer in
      '{{'*'"error"'*200) fail "$answer" "$1 could not be created; if a part of it is left, delete it" ;;
      '{{'*"\\"status\\": \\"${{3-}}"*200) return 0 ;;
      '{{'*200) ;;
      *) sleep 2 ;;
    esac
  done
  [[ -z ${{3-}} ]] || fail "$answer" "$1 was not created in time"
}}"""


def creations(job: Job, body: RequestBody) -> Creations:
    """Return the creation of each object of a request body, in the order in which they refer to each other."""
    steps = tuple(_creation(job, key, body) for key in DOCUMENTS if key in body)
    return Creations(steps, lambda *values: _lines(job, steps, *values), _wait, _operation, _MAX_WAITS)


def delete_command(job: Job, key: str) -> Command:
    """Return the command of gcloud that deletes an object of a job."""
    kind, place = place_of(job, key)
    words = ("gcloud", "compute", *_COMMAND_GROUPS[key], "delete", job.name)
    return Command((*words, f"--project={job.environment.project}", f"--{kind}={place}"))


def _without_question(command: Command) -> Command:
    """Return a command of gcloud that asks nothing: a question would read the next of several lines that are pasted."""
    return Command((*command.argv, "--quiet"))


def _creation(job: Job, key: str, body: RequestBody) -> Creation:
    collection = f"{API}/{collection_path(job, key)}"
    url = object_url(job, key)
    post = (*_WITH_STATUS, *_JSON, "--data-binary", "@-", collection)
    return Creation(
        document=key,
        name=job.name,
        find=Command((*_WITH_STATUS, url), token=True),
        create=Command(post, reads_config=True, config_format="json", token=True),
        undo=Command((*_WITH_STATUS, "--request", "DELETE", url), token=True),
        delete=_without_question(delete_command(job, key)),
        content=body[key].get("description", ""),
    )


def _wait(operation_url: str) -> Command:
    return Command((*_WITH_STATUS, "--data", "", f"{operation_url}/wait"), token=True)


def _operation(answer: Mapping[str, Any]) -> Operation:
    """Read an operation; whatever has another form, such as the answer of a proxy, is none."""
    url = answer.get("selfLink")
    is_operation = isinstance(url, str) and isinstance(answer.get("status"), str)
    return Operation(str(url) if is_operation else "", answer.get("status") == "DONE", _error(answer.get("error")))


def _error(error: Any) -> str:
    """Return the message of a refused request, `error.message`, or of a failed operation, `error.errors[].message`."""
    if not isinstance(error, dict):
        return str(error or "")
    errors = error.get("errors")
    rows = [*(errors if isinstance(errors, list) else ()), error]
    messages = [str(row["message"]) for row in rows if isinstance(row, dict) and row.get("message")]
    return messages[0] if messages else str(error)


def _lines(job: Job, steps: Sequence[Creation], config: Sequence[str], job_hash: str) -> str:
    """Return a subshell, which keeps the names of its functions out of the caller's shell, and ends at a failure.

    The lines have the paths and contents of one job, so they compare its hash with that of what they would post: the
    spec may have changed since. The command that deletes what costs is printed before it is created.
    """
    from shlex import join, quote

    request = Command((*_WITH_STATUS, *_JSON), token=True).bash().replace(" --header ", " \\\n    --header ")
    tries = " ".join(str(number + 1) for number in range(_MAX_WAITS))
    *first, last = steps
    return "\n".join(
        [
            "# `tpucfg submit --execute` does this without a shell, and deletes what it made if a step fails.",
            "(",
            f"api={quote(f'{API}/projects/{job.environment.project}')}",
            f'render() {{ {join(config)} "$@"; }}',
            f'request() {{\n  {request} "$@" || true\n}}',
            _BASH.format(waits=_MAX_WAITS, tries=tries),
            f"[[ $(render) == *{job_hash}* ]] || fail 'these lines are of another state of the spec: print them again'",
            *(f"{_exists(job, step)} || {_create(job, step)} DONE" for step in first),
            f"{_exists(job, last)} || {{",
            f"""  echo "$(date -u +%FT%TZ)" {quote(f"is the start; delete it with: {last.delete.bash()}")} >&2""",
            f"  {_create(job, last)}",
            "}",
            f"echo {quote(f'{last.name} is accepted, and may still wait for its machines')} >&2",
            ")",
        ]
    )


def _exists(job: Job, step: Creation) -> str:
    """Return the line that looks an object up."""
    from shlex import join

    return join(("exists", f"{_collection(job, step)}/{step.name}", *([step.content] if step.content else ())))


def _create(job: Job, step: Creation) -> str:
    """Return the line that creates an object."""
    from shlex import join

    return join(("create", step.document, _collection(job, step)))


def _collection(job: Job, step: Creation) -> str:
    """Return the path of a collection below the project."""
    return collection_path(job, step.document).removeprefix(f"projects/{job.environment.project}/")
