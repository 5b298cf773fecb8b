"""Monitor under Pulumi's mocks that records what a program declares. Importing this module imports Pulumi."""

from typing import Any, Final

from pulumi.runtime import mocks, rpc

from tpucfg.infra.request_options import Ancestors, request_options
from tpucfg.infra.resources import Resource, Unseen
from tpucfg.spec.project import Environment

_KNOWN_CALLS: Final = ("gcp:organizations/getProject:getProject",)
"""Look-ups whose answer is a placeholder that the inputs show as one."""
_PROVIDER_PREFIX: Final = "pulumi:providers:"
_OWN_PREFIX: Final = "pulumi:"
_STACK_TYPE: Final = "pulumi:pulumi:Stack"
_DYNAMIC_PREFIX: Final = "pulumi-python:dynamic"
_GOOGLE_PACKAGE: Final = "gcp"


class GoogleMocks(mocks.Mocks):
    """Answers look-ups with placeholders that name the value they replace."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]] | None]:
        """Answer as `getProject` does."""
        project_id = str(args.args.get("projectId") or self._environment.project)
        return {"id": project_id, "projectId": project_id, "number": f"[number of {project_id}]"}, []

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        """Return the inputs as outputs."""
        return f"{args.name}-id", dict(args.inputs)


class RecordingMonitor(mocks.MockMonitor):
    """Records each resource with its options, and each feature that takes an engine."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(GoogleMocks(environment))
        self.recorded: dict[tuple[str, str, str], Resource] = {}
        self.providers: list[Resource] = []
        self.unseen: set[Unseen] = set()
        self.duplicates: list[str] = []
        self._ancestors: dict[str, Ancestors] = {}

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
        response = super().RegisterResource(request)  # type: ignore[no-untyped-call] # as the SDK has it
        if request.type != _STACK_TYPE:
            parent = self._ancestors.get(request.parent, Ancestors())
            self._ancestors[response.urn] = parent.below(request)
        return response

    def _record(self, request: Any) -> None:
        resource = _resource(request, self._ancestors.get(request.parent, Ancestors()))
        key = (resource.parent, resource.type, resource.name)
        if key in self.recorded:
            self.duplicates.append(f"{resource.kind} {resource.name}")
        self.recorded[key] = resource
        if request.type.startswith(_DYNAMIC_PREFIX):
            self.unseen.add(Unseen("dynamic", request.name))

    def ReadResource(self, request: Any) -> Any:  # noqa: N802
        """Record that the program reads an existing resource, or another stack's outputs."""
        self.unseen.add(Unseen("read", f"{request.type} {request.name}"))
        return super().ReadResource(request)  # type: ignore[no-untyped-call]

    def ExistsResource(self, request: Any) -> Any:  # noqa: N802
        """Record that the program asks for an existing resource."""
        self.unseen.add(Unseen("read", f"{request.type} {request.id}"))
        return super().ExistsResource(request)  # type: ignore[no-untyped-call]

    def Invoke(self, request: Any) -> Any:  # noqa: N802
        """Record a look-up that is not answered as Google would."""
        if request.tok not in _KNOWN_CALLS:
            self.unseen.add(Unseen("call", request.tok))
        return super().Invoke(request)  # type: ignore[no-untyped-call]

    def RegisterStackTransform(self, request: Any) -> Any:  # noqa: N802
        """Record a transform of all resources."""
        self.unseen.add(Unseen("transform", "all resources"))
        return super().RegisterStackTransform(request)  # type: ignore[no-untyped-call]

    def RegisterStackInvokeTransform(self, request: Any) -> Any:  # noqa: N802
        """Record a transform of all look-ups."""
        self.unseen.add(Unseen("transform", "all look-ups"))
        return super().RegisterStackInvokeTransform(request)  # type: ignore[no-untyped-call]

    def RegisterPackage(self, request: Any) -> Any:  # noqa: N802
        """Record a provider that is described by parameters."""
        self.unseen.add(Unseen("parameters", f"{request.name} {request.version} {request.download_url}".strip()))
        return super().RegisterPackage(request)  # type: ignore[no-untyped-call]


def _resource(request: Any, ancestors: Ancestors) -> Resource:
    inputs, secrets = _plain_inputs(rpc.deserialize_properties(request.object))
    options = request_options(request, ancestors, default_version=_default_version(request.type))
    return Resource(
        request.type,
        request.name,
        inputs,
        protect=bool(request.protect),
        retain=bool(request.retainOnDelete),
        options=options,
        secrets=secrets,
    )


def _plain_inputs(inputs: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the inputs without marks of secrets, and the names of those that have one."""
    plain, secrets = {}, []
    for name, value in inputs.items():
        plain[name], is_secret = _unwrap(value)
        secrets += [name] * is_secret
    return plain, tuple(sorted(secrets))


def _unwrap(value: Any) -> tuple[Any, bool]:
    """Return a value with whole numbers as integers, as the protocol has only floats, and True if it has a secret."""
    if rpc.is_rpc_secret(value):
        return _unwrap(value["value"])[0], True
    if isinstance(value, dict):
        items = {key: _unwrap(item) for key, item in value.items()}
        return {key: item for key, (item, _) in items.items()}, any(secret for _, secret in items.values())
    if isinstance(value, list):
        pairs = [_unwrap(item) for item in value]
        return [item for item, _ in pairs], any(secret for _, secret in pairs)
    return int(value) if isinstance(value, float) and value.is_integer() else value, False


def _default_version(type_: str) -> str:
    """Return the version of the provider that the installed package requests."""
    if not type_.startswith((f"{_GOOGLE_PACKAGE}:", f"{_PROVIDER_PREFIX}{_GOOGLE_PACKAGE}")):
        return ""
    from pulumi_gcp import _utilities

    return str(_utilities.get_version())  # type: ignore[no-untyped-call]
