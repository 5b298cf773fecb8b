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
)
from tpucfg.targets.creations import Creation, Creations, Operation
from tpucfg.targets.interface import Command, RequestBody

_CURL: Final = ("curl", "--silent", "--show-error", "--max-time", "180")
"""Prints the answer, of a refused request too; a wait takes two minutes."""
_WITH_STATUS: Final = (*_CURL, "--write-out", "\\n%{http_code}\\n")
_FAILING: Final = (*_CURL, "--fail-with-body")
"""Fails if a request is refused, for bash."""
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
# create OBJECT COLLECTION [DONE]: post it, and wait for its operation, for DONE up to {waits} times two minutes.
create() {{
  local try next operation answer
  answer=$({config} --document "$1" | request --data-binary @- "$api/$2") || {{ echo "$answer" >&2; return 1; }}
  operation=$(sed -n 's|^ *"selfLink": "\\(.*\\)".*|\\1|p' <<< "$answer")
  for try in {tries}; do
    if next=$(request --data '' "$operation/wait"); then answer=$next; else sleep 2; continue; fi
    [[ $answer == *'"error"'* || $answer == *"\\"status\\": \\"${{3-}}"* ]] && break
  done
  echo "$answer" >&2
  [[ $answer == *"\\"status\\": \\"${{3-}}"* && $answer != *'"error"'* ]]
}}"""
_EXISTS: Final = """\
# exists OBJECT CONTENT: an equal one of an earlier run is reused.
exists() { [[ $(request "$api/$1" 2>/dev/null) == *"$2"* ]]; }"""


def creations(job: Job, body: RequestBody) -> Creations:
    """Return the creation of each object of a request body, in the order in which they refer to each other."""
    steps = tuple(_creation(job, key, body) for key in DOCUMENTS if key in body)
    return Creations(steps, lambda config: _lines(job, steps, config), _wait, _operation, _MAX_WAITS)


def delete_command(job: Job, key: str) -> Command:
    """Return the command of gcloud that deletes an object of a job."""
    place, value = _place(job, key)
    words = ("gcloud", "compute", *_COMMAND_GROUPS[key], "delete", job.name)
    return Command((*words, f"--project={job.environment.project}", f"--{place}={value}"))


def _place(job: Job, key: str) -> tuple[str, str]:
    """Return the kind of place in which an object is, and the place: `zone`, `us-east5-a`."""
    place, value = collection_path(job, key).split("/")[2:4]
    return place.removesuffix("s"), value


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
        delete=delete_command(job, key),
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


def _lines(job: Job, steps: Sequence[Creation], config: Sequence[str]) -> str:
    """Return a subshell, which keeps the names of its functions out of the caller's shell.

    It fails if one of the requests is refused, or its operation fails, or an object to which another one refers is not
    there in time, as `submit --execute` does. The command that deletes what costs is printed before it is created.
    """
    from shlex import join, quote

    request = Command((*_FAILING, *_JSON), token=True).bash().replace(" --header @", " \\\n    --header @")
    tries = " ".join(str(number + 1) for number in range(_MAX_WAITS))
    *first, last = steps
    deletion = f"is the start. To delete it, also after a failure: {last.delete.bash()}"
    parts = [
        *(_step(job, step) for step in first),
        f'echo "$(date -u +%FT%TZ)" {quote(deletion)} >&2 &&',
        join(("create", last.document, _collection(job, last))) + " &&",
        f"echo {quote(f'{last.name} is accepted, and may still wait for its machines')} >&2",
    ]
    functions = [
        f"api={quote(f'{API}/projects/{job.environment.project}')}",
        f'request() {{\n  {request} "$@"\n}}',
        _BASH.format(waits=_MAX_WAITS, config=join(config), tries=tries),
        *([_EXISTS] if first else ()),
    ]
    return "\n".join(["(", *functions, *parts, ")"])


def _step(job: Job, step: Creation) -> str:
    """Return the line that creates an object to which another one refers."""
    from shlex import join

    collection = _collection(job, step)
    exists = join(("exists", f"{collection}/{step.name}", step.content))
    return f"{{ {exists} || {join(('create', step.document, collection, 'DONE'))}; }} &&"


def _collection(job: Job, step: Creation) -> str:
    """Return the path of a collection below the project."""
    return collection_path(job, step.document).removeprefix(f"projects/{job.environment.project}/")
