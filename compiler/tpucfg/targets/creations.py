"""The start of a job by several requests of Compute Engine's API: each creates an object, and returns an operation.

An operation has a URL of its own, and a request to `/wait` below it returns when the operation has ended, or after two
minutes: https://cloud.google.com/compute/docs/reference/rest/v1/zoneOperations/wait.
"""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from tpucfg.targets.interface import Command

CURL: Final = ("curl", "--silent", "--show-error", "--fail-with-body", "--write-out", "\\n%{http_code}\\n")
"""Prints the answer, of a refused request too, then the HTTP status on a line of its own."""
_JSON: Final = ("--header", "Content-Type: application/json")
_WAIT_URL: Final = r"""sed --quiet 's|^ *"selfLink": "\(.*\)".*|url = "\1/wait"|p'"""
"""Turns an operation into curl's setting of the URL to wait at: https://curl.se/docs/manpage.html#-K."""


class Creation(NamedTuple):
    """The creation of one object."""

    document: str
    """The key of the object in the request body."""
    collection_url: str
    """The URL of the collection in which it is created."""
    name: str
    content: str = ""
    """A text that an existing object of this name contains only if it is equal; empty if none is reused."""

    @property
    def url(self) -> str:
        """The URL of the object."""
        return f"{self.collection_url}/{self.name}"

    @property
    def create(self) -> Command:
        """Post the document; the answer is an operation."""
        argv = (*CURL, *_JSON, "--data-binary", "@-", self.collection_url)
        return Command(argv, reads_config=True, config_format="json", token=True)

    @property
    def find(self) -> Command:
        """Print the existing object of the name."""
        return Command((*CURL, self.url), token=True)

    @property
    def undo(self) -> Command:
        """Delete the object; the answer is an operation."""
        return Command((*CURL, "--request", "DELETE", self.url), token=True)


def wait_command(operation_url: str) -> Command:
    """Return the command that waits for the end of an operation, at most two minutes."""
    return Command((*CURL, "--request", "POST", "--data", "", f"{operation_url}/wait"), token=True)


class Creations(NamedTuple):
    """The creation of all objects of a job, in order."""

    steps: tuple[Creation, ...]

    @property
    def config_format(self) -> Literal["json"]:
        """The format of the documents that are posted."""
        return "json"

    def bash(self, config: Sequence[str] = ()) -> str:
        """Return lines to paste into bash; `config` is the command that prints the config.

        They create one object after the other, and wait for the operation of each, as the next one refers to it. A
        subshell keeps the names of the functions out of the caller's shell.
        """
        from shlex import join

        request = Command(("curl", "--silent", "--show-error", "--fail-with-body", *_JSON), token=True).bash()
        lines = [
            f'request() {{ {request} "$@"; }}',
            f'create() {{ {join(config)} --document "$1" | request --data-binary @- "$2" | tee /dev/stderr |',
            f"  {_WAIT_URL} | request --data '' --config -; }}",
            'exists() { request "$1" 2>/dev/null | grep --quiet --fixed-strings "$2"; }',
        ]
        return "\n".join(["(", *lines, " &&\n".join(map(_bash, self.steps)), ")"])


def _bash(step: Creation) -> str:
    from shlex import join, quote

    create = join(("create", step.document, step.collection_url))
    return f"{{ exists {step.url} {quote(step.content)} || {create}; }}" if step.content else create
