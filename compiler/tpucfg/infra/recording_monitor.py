"""Monitor under Pulumi's mocks that records what a program declares. Importing this module imports Pulumi.

Mocks receive a resource's inputs, but none of its options: these are in the request that the library sends to the
engine. https://www.pulumi.com/docs/iac/concepts/resources/options/.
"""

import hashlib
import json
import re
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, NamedTuple

from pulumi.runtime import mocks, rpc

from tpucfg.infra.resources import Resource, Unseen, urn_name
from tpucfg.redaction import SECRET
from tpucfg.spec import Environment

_KNOWN_CALLS: Final = (
    "gcp:organizations/getProject:getProject",
    "gcp:storage/getBucket:getBucket",
    "gcp:storage/getProjectServiceAccount:getProjectServiceAccount",
)
"""Look-ups of the bundled program: the answer is a placeholder that the inputs show as one, or an existing bucket as it
has to be."""
_PROVIDER_PREFIX: Final = "pulumi:providers:"
_OWN_PREFIX: Final = "pulumi:"
_STACK_TYPE: Final = "pulumi:pulumi:Stack"
_DYNAMIC_PREFIX: Final = "pulumi-python:dynamic"
_GOOGLE_PACKAGE: Final = "gcp"
_EXPLAINING_HOOK: Final = ("on_error", "on-refusal")
"""The hook of the bundled program, which explains an error after it has happened."""
_NO_OPTION: Final = re.compile(
    # What the library supports, and the place in the program.
    r"accept\w+|supports\w+|aliasSpecs|parentStackTraceHandle|snippetId|sourcePosition|stackTrace"
    # The order and the time of operations.
    r"|customTimeouts|dependencies|propertyDependencies"
    # Recorded apart.
    r"|type|name|object|custom|remote|parent|providers|protect|retainOnDelete|transforms|packageRef|pluginChecksums"
    r"|aliasURNs|deleteBeforeReplaceDefined"
)
"""Fields of a request that do not change what an update does, or that are recorded apart. All others are options."""
_PUBLIC_INPUTS: Final = ("role", "member", "members")
"""Inputs by which a resource is a grant; members and their roles are no secret."""


EventLoop = Callable[[], AbstractContextManager[None]]
"""Sets an event loop of a thread, and closes it."""


class Ancestors(NamedTuple):
    """The parents of a resource."""

    types: str = ""
    """Their types from the outermost, as they stand in the resource's URN; empty below the stack itself."""
    aliases: tuple[Mapping[str, str], ...] = ()
    """Their aliases, which the engine applies to all resources below."""


class GoogleMocks(mocks.Mocks):
    """Answers look-ups with placeholders that name the value they replace."""

    def __init__(self, environment: Environment, project_number: str = "") -> None:
        self._environment, self._number = environment, project_number

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]] | None]:
        """Answer as `getProject`, `getBucket` and `getProjectServiceAccount` do."""
        project_id = str(
            args.args.get("projectId") or args.args.get("project") or self._environment.project
        )
        is_own = project_id == self._environment.project
        number = (is_own and self._number) or f"[number of {project_id}]"
        return {
            "id": project_id,
            "projectId": project_id,
            "number": number,
            # https://cloud.google.com/storage/docs/projects#service-agents
            "emailAddress": f"service-{number}@gs-project-accounts.iam.gserviceaccount.com",
            "location": self._environment.region.upper(),
            "uniformBucketLevelAccess": True,
            "publicAccessPrevention": "enforced",
        }, []

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        """Return the inputs as outputs."""
        return f"{args.name}-id", dict(args.inputs)


def _recording(
    method: str, unseen: Callable[[Any], Unseen | None]
) -> Callable[["RecordingMonitor", Any], Any]:
    """Return a method of the monitor that records a feature which takes an engine, and answers as the mocks do."""

    def record(monitor: "RecordingMonitor", request: Any) -> Any:
        if feature := unseen(request):
            monitor.unseen.add(feature)
        with monitor.loop():
            return getattr(mocks.MockMonitor, method)(monitor, request)

    return record


class RecordingMonitor(mocks.MockMonitor):
    """Records each resource with its options, and each feature that takes an engine."""

    def __init__(
        self, environment: Environment, event_loop: EventLoop, project_number: str = ""
    ) -> None:
        super().__init__(GoogleMocks(environment, project_number))
        self._event_loop = event_loop
        self.recorded: dict[tuple[str, str, str], Resource] = {}
        self.providers: list[Resource] = []
        self.unseen: set[Unseen] = set()
        self.duplicates: list[str] = []
        self._ancestors: dict[str, Ancestors] = {}

    def loop(self) -> AbstractContextManager[None]:
        """Set an event loop of a worker thread of the SDK for one request; the program's own thread has one."""
        return (
            nullcontext()
            if threading.current_thread() is threading.main_thread()
            else self._event_loop()
        )

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
        """Record the resource."""
        if request.custom and request.type.startswith(_PROVIDER_PREFIX):
            self.providers.append(_resource(request, Ancestors()))
        elif request.custom and not request.type.startswith(_OWN_PREFIX):
            self._record(request)
        elif request.remote:
            self.unseen.add(Unseen("component", f"{request.type} {request.name}"))
        if request.transforms:
            self.unseen.add(Unseen("transform", f"{request.type} {request.name}"))
        with self.loop():
            response = super().RegisterResource(request)  # type: ignore[no-untyped-call] # as the SDK has it
        if request.type != _STACK_TYPE:
            above = self._ancestors.get(request.parent, Ancestors())
            types = f"{above.types}${request.type}" if above.types else request.type
            self._ancestors[response.urn] = Ancestors(types, (*above.aliases, *_aliases(request)))
        return response

    def _record(self, request: Any) -> None:
        resource = _resource(request, self._ancestors.get(request.parent, Ancestors()))
        key = resource.key
        if key in self.recorded:
            self.duplicates.append(f"{resource.kind} {resource.name}")
        self.recorded[key] = resource
        if request.type.startswith(_DYNAMIC_PREFIX):
            self.unseen.add(Unseen("dynamic", request.name))

    ReadResource = _recording(
        "ReadResource", lambda request: Unseen("read", f"{request.type} {request.name}")
    )
    """A program reads an existing resource, or another stack's outputs."""
    ExistsResource = _recording(
        "ExistsResource", lambda request: Unseen("read", f"{request.type} {request.id}")
    )
    Invoke = _recording(
        "Invoke",
        lambda request: None if request.tok in _KNOWN_CALLS else Unseen("call", request.tok),
    )
    """A look-up that is not answered as Google would."""
    RegisterStackTransform = _recording(
        "RegisterStackTransform", lambda _: Unseen("transform", "all resources")
    )
    RegisterStackInvokeTransform = _recording(
        "RegisterStackInvokeTransform", lambda _: Unseen("transform", "all look-ups")
    )
    RegisterPackage = _recording(
        "RegisterPackage",
        lambda request: Unseen(
            "parameters", f"{request.name} {request.version} {request.download_url}".strip()
        ),
    )
    """A provider that is described by parameters."""


def _resource(request: Any, ancestors: Ancestors) -> Resource:
    inputs, secrets = _plain_inputs(rpc.deserialize_properties(request.object))
    return Resource(
        request.type,
        request.name,
        inputs,
        protect=bool(request.protect),
        retain=bool(request.retainOnDelete),
        options=_options(request, ancestors),
        secrets=secrets,
    )


# Inputs


def _plain_inputs(inputs: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the inputs with a mark for those that are or contain a secret, and a digest of each of these."""
    plain, secrets = {}, {}
    is_grant = _PUBLIC_INPUTS[0] in inputs and any(key in inputs for key in _PUBLIC_INPUTS[1:])
    for name, value in sorted(inputs.items()):
        plain[name], is_secret = _unwrap(value)
        if is_secret and (not is_grant or name == "condition"):
            # The program has no credentials here: what it can wrap stands in its source.
            plain[name], secrets[name] = (
                SECRET,
                _digest(json.dumps(plain[name], sort_keys=True, default=str)),
            )
    return plain, secrets


def _unwrap(value: Any) -> tuple[Any, bool]:
    """Return a value as plain data, and True if it has a secret.

    Whole numbers become integers, as the protocol has only floats. Keys are sorted, as the maps of the protocol have
    another order in each process.
    """
    if rpc.is_rpc_secret(value):
        return _unwrap(value["value"])[0], True
    if isinstance(value, dict):
        items = {key: _unwrap(item) for key, item in sorted(value.items())}
        return {key: item for key, (item, _) in items.items()}, any(
            secret for _, secret in items.values()
        )
    if isinstance(value, list):
        pairs = [_unwrap(item) for item in value]
        return [item for item, _ in pairs], any(secret for _, secret in pairs)
    return int(value) if isinstance(value, float) and value.is_integer() else value, False


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


# Options


def _options(request: Any, ancestors: Ancestors) -> dict[str, Any]:
    """Return the options that differ from their default, as plain data, in the order of their names."""
    options = {}
    for field in request.DESCRIPTOR.fields:
        name = _camel_case(field.name)
        if not _NO_OPTION.fullmatch(name):
            options[name] = _READERS.get(name, _plain)(getattr(request, field.name))
    if not request.deleteBeforeReplaceDefined:
        del options["deleteBeforeReplace"]
    if options["version"] == _default_version(request.type):
        del options["version"]
    options |= {
        "parent": ancestors.types,
        "parentAliases": [*ancestors.aliases],
        "aliases": _aliases(request),
    }
    return {
        name: value for name, value in sorted(options.items()) if value not in (None, "", [], {})
    }


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.title() for part in others)


def _plain(value: Any) -> Any:
    """Return the value of a field: texts and booleans as they are, lists sorted, and a digest of any message."""
    if isinstance(value, str | bool | int | float):
        return value
    if hasattr(value, "items"):
        return dict(sorted(value.items()))
    if hasattr(value, "ListFields"):
        # Its text may be a secret.
        return _digest(str(value)) if value.ListFields() else ""
    return sorted(map(_plain, value))


def _aliases(request: Any) -> list[Mapping[str, str]]:
    return sorted((fields for alias in request.aliases if (fields := _alias(alias))), key=str)


def _alias(alias: Any) -> Mapping[str, str]:
    """Return an alias as the part of a URN that it names; empty for another type only, as providers rename types."""
    if alias.urn:
        return {"urn": alias.urn}
    spec = alias.spec
    fields = {
        "name": spec.name,
        "parent": spec.parentUrn,
        "stack": spec.stack,
        "project": spec.project,
    }
    changed = {key: value for key, value in fields.items() if value}
    if spec.noParent:
        changed["parent"] = ""
    return changed | ({"type": spec.type} if changed and spec.type else {})


def _hooks(binding: Any) -> list[str]:
    """Return the hooks as `stage: name`."""
    stages = ((field.name, [*value]) for field, value in binding.ListFields())
    return [
        f"{stage}: {name}"
        for stage, names in stages
        for name in names
        if (stage, name) != _EXPLAINING_HOOK
    ]


_READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "deletedWith": urn_name,
    "hooks": _hooks,
    "provider": urn_name,
    "replaceWith": lambda urns: sorted(map(urn_name, urns)),
}
"""Functions that read an option whose field does not have its value as it is."""


def _default_version(type_: str) -> str:
    """Return the version of the provider that the installed package requests."""
    if not type_.startswith((f"{_GOOGLE_PACKAGE}:", f"{_PROVIDER_PREFIX}{_GOOGLE_PACKAGE}")):
        return ""
    from pulumi_gcp import _utilities

    return str(_utilities.get_version())  # type: ignore[no-untyped-call]
