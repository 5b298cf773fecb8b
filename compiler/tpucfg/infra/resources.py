"""The resources of an environment as plain values, without Pulumi."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tpucfg import schemas
from tpucfg.findings import Finding
from tpucfg.paths import children
from tpucfg.spec import Environment
from tpucfg.strict_json import finite_float, strict_decoder
from tpucfg.text_format import printable

PROJECT_NUMBER: Final = re.compile(r"\[number of [^\]]{1,200}\]")
"""The mocks' placeholder of a project's number, which only Google knows."""
ACCOUNT: Final = "gcp:serviceaccount/account:Account"
BUCKET: Final = "gcp:storage/bucket:Bucket"
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(\.0*)?")
_BOOLEANS: Final[Mapping[str, bool]] = {"true": True, "1": True, "false": False, "0": False}


# A NamedTuple and not a dataclass: the worker sends `_asdict()` as JSON, and resources sort by type and name.
class Resource(NamedTuple):
    """One resource, as the stack program declares it."""

    type: str
    """Pulumi's type token: `gcp:storage/bucket:Bucket`."""
    name: str
    """The logical name."""
    inputs: Mapping[str, Any]
    """The inputs in Pulumi's spelling: `uniformBucketLevelAccess`."""
    protect: bool = False
    """Pulumi refuses to delete or replace the resource."""
    retain: bool = False
    """Pulumi leaves the resource behind when the stack no longer declares it."""
    options: Mapping[str, Any] = {}
    """Other options that differ from their default, as plain data: `ignoreChanges`, `importId`, `provider`."""
    secrets: Mapping[str, str] = {}
    """A digest of each input that the program wraps as a secret: `inputs` has only a mark of it."""

    @property
    def key(self) -> tuple[str, str, str]:
        """The identity of the resource in its stack: the types of its parents, its own type, and its name."""
        return str(self.options.get("parent", "")), self.type, self.name

    @property
    def kind(self) -> str:
        """The short form of the type: `storage.Bucket`."""
        package, _, name = self.type.rpartition(":")
        return f"{package.removeprefix('gcp:').partition('/')[0]}.{name}"

    @property
    def label(self) -> str:
        """The resource as a message names it."""
        return f"{self.kind} {self.name}"


def urn_name(urn: str) -> str:
    """Return the logical name in a URN, or in a reference to a provider, which has an id after it."""
    return (*urn.split("::", 4), "", "", "", "")[3]


def sort_resources(resources: Iterable[Resource]) -> tuple[Resource, ...]:
    """Return the resources by type and name alone: options and inputs of equal names need not be comparable."""
    return tuple(sorted(resources, key=lambda resource: (resource.type, resource.name)))


class Unseen(NamedTuple):
    """A feature of Pulumi whose effect on resources is not known without an engine."""

    kind: str
    """`call`, `component`, `dynamic`, `parameters`, `read` or `transform`."""
    name: str = ""
    """The resource that it is applied to, or its own name."""


class EnvironmentResources(NamedTuple):
    """All resources and outputs of one environment's stack."""

    environment: Environment
    resources: tuple[Resource, ...]
    """Sorted by type and name."""
    outputs: Mapping[str, Any]
    """Without the values that are wrapped as secrets."""
    providers: tuple[Resource, ...] = ()
    """The providers that the program configures itself, sorted like the resources."""
    unseen: tuple[Unseen, ...] = ()
    """Features that the program uses and only an engine with its plugins can carry out, sorted."""


# Inputs, read as the provider reads them: it accepts texts in place of numbers and booleans.


def input_at(inputs: Mapping[str, Any], path: Iterable[str]) -> Any:
    """Return the value at a path; None if there is none, and the mark of a secret or unknown value on the way."""
    value: Any = inputs
    for key in path:
        # The provider's schema has lists of one item where Pulumi has objects.
        value = value[0] if isinstance(value, list) and len(value) == 1 else value
        if isinstance(value, str):
            return value
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def boolean(value: Any) -> bool | None:
    """Return a boolean; None if the value is none."""
    if isinstance(value, bool):
        return value
    return _BOOLEANS.get(str(value).casefold()) if isinstance(value, int | str) else None


def number(value: Any) -> Any:
    """Return a whole number if the value is one, also as a text; any other value as it is."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return int(value.partition(".")[0])
    return int(value) if isinstance(value, float) and value.is_integer() else value


# The file that carries resources from one machine to another.


MAX_FILE_BYTES: Final = 64 * 2**20
"""Limit of a file: a spec with eight environments takes 150 kB."""
_SCHEMA: Final = "infra"
_MAX_DEPTH: Final = 64
"""Nesting limit of a document; Google's deepest type has a dozen levels."""
_MAX_DIGITS: Final = 25
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_MAX_REASON_LINES: Final = 40
_MAX_LINE_LENGTH: Final = 2000


class ProgramFailure(NamedTuple):
    """The reason why the resources of an environment are unknown."""

    reason: str
    """A sentence, and below it lines of the program."""


Declared = EnvironmentResources | ProgramFailure
"""The resources that a stack program declares for an environment, or the reason why they are unknown."""


class ResourceFile(NamedTuple):
    """The contents of a file about the specs of one revision."""

    name: str
    """The file's name, for messages."""
    environments: Mapping[tuple[str, str], Mapping[str, Any]] = {}
    """The data of each environment, by the spec's path as it was given to `tpucfg infra` and the environment's name."""
    problem: str = ""
    """The reason why the file cannot be read; empty if it can."""

    def declared(self, spec: str, environments: Sequence[Environment]) -> dict[str, Declared]:
        """Return the resources of a spec's environments, or why they are unknown."""
        return {item.name: self._declared(spec, item) for item in environments}

    def _declared(self, spec: str, environment: Environment) -> Declared:
        if self.problem:
            return ProgramFailure(f"{self.name} cannot be read: {self.problem}")
        data = self.environments.get((spec, environment.name))
        if data is None:
            return ProgramFailure(f"{self.name} has no resources of {environment.name} in {spec}")
        if "problem" in data:
            lines = data["problem"].splitlines()[:_MAX_REASON_LINES]
            return ProgramFailure("\n".join(line[:_MAX_LINE_LENGTH] for line in lines))
        resources, providers = (
            sort_resources(Resource(**fields) for fields in data[key])
            for key in ("resources", "providers")
        )
        unseen = tuple(sorted(Unseen(*fields) for fields in data["unseen"]))
        return EnvironmentResources(environment, resources, data["outputs"], providers, unseen)


def document_data(
    spec: str, declared: Mapping[str, Declared], findings: Sequence[Finding] = ()
) -> dict[str, Any]:
    """Return the document of one spec as plain data."""
    return {
        "spec": spec,
        "environments": [_environment_data(name, result) for name, result in declared.items()],
        "findings": [
            finding.data("id", "level", "message", "help", "location") for finding in findings
        ],
    }


def _environment_data(name: str, declared: Declared) -> dict[str, Any]:
    if isinstance(declared, ProgramFailure):
        return {"name": name, "problem": declared.reason}
    return {
        "name": name,
        "resources": [resource._asdict() for resource in declared.resources],
        "outputs": dict(sorted(declared.outputs.items())),
        "providers": [resource._asdict() for resource in declared.providers],
        "unseen": [[*item] for item in declared.unseen],
    }


def read_resource_file(name: str, data: bytes) -> ResourceFile:
    """Read a file.

    Args:
        name: its name, for messages.
        data: its content, of which at most MAX_FILE_BYTES are accepted.
    """
    if len(data) > MAX_FILE_BYTES:
        return ResourceFile(name, problem=f"it is larger than {MAX_FILE_BYTES // 2**20} MiB")
    environments: dict[tuple[str, str], Mapping[str, Any]] = {}
    try:
        for document in _documents(data.decode("utf-8")):
            if not (_is_shallow(document, _MAX_DEPTH) and schemas.is_valid(_SCHEMA, document)):
                return ResourceFile(
                    name, problem="it is not the output of tpucfg infra --format json"
                )
            # Half a character, which JSON can escape, cannot be printed.
            json.dumps(document, ensure_ascii=False).encode()
            for environment in document["environments"]:
                key = (document["spec"], environment["name"])
                if key in environments:
                    return ResourceFile(name, problem=f"{key[1]} of {key[0]} occurs twice")
                environments[key] = environment
    except (ValueError, RecursionError) as error:
        return ResourceFile(name, problem=printable(str(error))[:_MAX_LINE_LENGTH])
    return ResourceFile(name, environments)


def _documents(text: str) -> Iterator[Any]:
    """Yield the JSON documents of a text.

    Raises:
        ValueError: The text has anything else.
    """
    position, end = 0, len(text.rstrip())
    while position < end:
        start = _SPACE.match(text, position)
        document, position = _DECODER.raw_decode(text, start.end() if start else position)
        yield document


def _integer(text: str) -> float:
    # Longer ones take quadratic time to read, and no input of Google's has them.
    return int(text) if len(text) <= _MAX_DIGITS else finite_float(text)


_DECODER: Final[json.JSONDecoder] = strict_decoder(_integer)


def _is_shallow(value: Any, levels: int) -> bool:
    return levels > 0 and all(_is_shallow(item, levels - 1) for _, item in children(value))
