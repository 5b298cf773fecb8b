"""A stand-in for the gcp plugin: Pulumi's plugin protocol over the in-memory cloud.

The engine attaches to it if `PULUMI_DEBUG_PROVIDERS=gcp:PORT` is set, so that engine, state, previews, protection,
hooks and replacement are real, without the plugin (175 MB) and without Google.
Protocol: https://www.pulumi.com/docs/iac/extending-pulumi/pulumi-provider-protocol/ (proto/pulumi/provider.proto).
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Never, TypeVar

import grpc
from google.protobuf import empty_pb2, json_format, struct_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc
from pulumi.runtime.rpc import UNKNOWN

from standin.cloud import Cloud
from standin.errors import ApiError
from standin.kinds import KINDS, Kind
from standin.paths import Change, changes_between

Answer = TypeVar("Answer")

_KINDS_OF_CHANGE = {
    Change.ADD: provider_pb2.PropertyDiff.ADD,
    Change.DELETE: provider_pb2.PropertyDiff.DELETE,
    Change.UPDATE: provider_pb2.PropertyDiff.UPDATE,
}


@contextlib.contextmanager
def serving(cloud: Cloud) -> Iterator[int]:
    """Serve a cloud as the gcp plugin on a loopback port until the block ends; return the port."""
    server = grpc.server(ThreadPoolExecutor(max_workers=16, thread_name_prefix="standin"))
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Provider(cloud), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield port
    finally:
        server.stop(grace=None).wait()


class Provider(provider_pb2_grpc.ResourceProviderServicer):
    """The gcp plugin from the engine's view."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud

    def Attach(
        self, request: plugin_pb2.PluginAttach, context: grpc.ServicerContext
    ) -> empty_pb2.Empty:
        """Accept the engine, which has the port from the environment."""
        return empty_pb2.Empty()

    def Handshake(
        self, request: provider_pb2.ProviderHandshakeRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ProviderHandshakeResponse:
        """Accept no secrets: the engine marks them."""
        return provider_pb2.ProviderHandshakeResponse()

    def GetPluginInfo(
        self, request: empty_pb2.Empty, context: grpc.ServicerContext
    ) -> plugin_pb2.PluginInfo:
        """Return the version of the replaced plugin."""
        return plugin_pb2.PluginInfo(version="10.2.0")

    def CheckConfig(
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        """Accept every provider setting."""
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(
        self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext
    ) -> provider_pb2.DiffResponse:
        """Report no difference: the provider's settings never replace it here."""
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    def Configure(
        self, request: provider_pb2.ConfigureRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ConfigureResponse:
        """Request previews, in which computed outputs are unknown."""
        return provider_pb2.ConfigureResponse(supportsPreview=True)

    def Cancel(self, request: empty_pb2.Empty, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """Do nothing: no operation runs in the background."""
        return empty_pb2.Empty()

    def Check(
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        """Reject a resource that lacks a required argument, with the provider's message."""
        missing = sorted(_kind(request.type, context).required - _props(request.news).keys())
        reason = 'Missing required argument. The argument "{0}" is required, but no definition was found.'
        failures = [
            provider_pb2.CheckFailure(reason=f"{reason.format(name)}. Examine values at '{name}'.")
            for name in missing
        ]
        return provider_pb2.CheckResponse(inputs=request.news, failures=failures)

    def Diff(
        self, request: provider_pb2.DiffRequest, context: grpc.ServicerContext
    ) -> provider_pb2.DiffResponse:
        """Compare state and inputs; outputs that are no inputs are no difference."""
        kind = _kind(request.type, context)
        changes = _differences(
            kind, _props(request.olds), _props(request.old_inputs), _props(request.news)
        )
        names = sorted({_top(path) for path in changes})
        replaces = [name for name in names if name in kind.replaces]
        some, none = provider_pb2.DiffResponse.DIFF_SOME, provider_pb2.DiffResponse.DIFF_NONE
        return provider_pb2.DiffResponse(
            changes=some if changes else none,
            diffs=names,
            replaces=replaces,
            deleteBeforeReplace=bool(replaces) and kind.deletes_first,
            detailedDiff={
                path: _property_diff(change, _top(path) in kind.replaces)
                for path, change in changes.items()
            },
            hasDetailedDiff=True,
        )

    def Create(
        self, request: provider_pb2.CreateRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CreateResponse:
        """Create the resource; a preview returns only the outputs that are known beforehand."""
        kind, inputs = _kind(request.type, context), _props(request.properties)
        if request.preview:
            unknown = dict.fromkeys(kind.computed, UNKNOWN)
            return provider_pb2.CreateResponse(properties=_struct({**inputs, **unknown}))
        identifier, outputs = _call_cloud(
            context, kind, inputs, lambda: kind.create(self.cloud, inputs)
        )
        return provider_pb2.CreateResponse(id=identifier, properties=_struct(outputs))

    def Read(
        self, request: provider_pb2.ReadRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ReadResponse:
        """Return the current resource; no id means that it does not exist."""
        kind, state, inputs = (
            _kind(request.type, context),
            _props(request.properties),
            _props(request.inputs),
        )
        now = _call_cloud(context, kind, state, lambda: kind.read(self.cloud, request.id, state))
        if now is None:
            return provider_pb2.ReadResponse()
        # An import has no inputs yet: all values except server-side ones become inputs.
        known = inputs or {
            name: value for name, value in now.items() if name not in kind.outputs_only
        }
        imported_inputs = {name: now.get(name, value) for name, value in known.items()}
        return provider_pb2.ReadResponse(
            id=request.id, properties=_struct(now), inputs=_struct(imported_inputs)
        )

    def Update(
        self, request: provider_pb2.UpdateRequest, context: grpc.ServicerContext
    ) -> provider_pb2.UpdateResponse:
        """Update the resource in place."""
        kind, old, new = _kind(request.type, context), _props(request.olds), _props(request.news)
        if request.preview:
            return provider_pb2.UpdateResponse(properties=_struct({**old, **new}))
        outputs = _call_cloud(context, kind, new, lambda: kind.update(self.cloud, request.id, new))
        return provider_pb2.UpdateResponse(properties=_struct(outputs))

    def Delete(
        self, request: provider_pb2.DeleteRequest, context: grpc.ServicerContext
    ) -> empty_pb2.Empty:
        """Delete the resource."""
        kind, state = _kind(request.type, context), _props(request.properties)
        _call_cloud(context, kind, state, lambda: kind.delete(self.cloud, request.id, state))
        return empty_pb2.Empty()

    def Invoke(
        self, request: provider_pb2.InvokeRequest, context: grpc.ServicerContext
    ) -> provider_pb2.InvokeResponse:
        """Answer the look-ups of a stack: a project, its storage agent, and a bucket."""
        if request.tok not in _LOOK_UPS:
            context.abort(
                grpc.StatusCode.UNIMPLEMENTED, f"no stand-in for the function {request.tok}"
            )
        try:
            answer = _LOOK_UPS[request.tok](self.cloud, _props(request.args))
        except ApiError as error:
            reason = f"Error reading {request.tok.rpartition(':get')[2]}: {error}"
            return provider_pb2.InvokeResponse(failures=[provider_pb2.CheckFailure(reason=reason)])
        return provider_pb2.InvokeResponse(**{"return": _struct(answer)})  # type: ignore[arg-type]


def _project(cloud: Cloud, args: dict[str, Any]) -> dict[str, Any]:
    project = cloud.project_id(str(args["projectId"]))
    return {
        "id": f"projects/{project}",
        "projectId": project,
        "number": str(cloud.number(project)),
        "name": project,
    }


def _storage_agent(cloud: Cloud, args: dict[str, Any]) -> dict[str, Any]:
    email = (
        f"service-{cloud.number(str(args['project']))}@gs-project-accounts.iam.gserviceaccount.com"
    )
    # Asking for it creates it: https://cloud.google.com/storage/docs/json_api/v1/projects/serviceAccount/get.
    cloud.agents.add(email)
    return {
        "id": email,
        "emailAddress": email,
        "member": f"serviceAccount:{email}",
        "project": args["project"],
    }


def _bucket(cloud: Cloud, args: dict[str, Any]) -> dict[str, Any]:
    return {"id": args["name"], "name": args["name"], **cloud.bucket(str(args["name"])).body}


_LOOK_UPS: Mapping[str, Callable[[Cloud, dict[str, Any]], dict[str, Any]]] = {
    "gcp:organizations/getProject:getProject": _project,
    "gcp:storage/getProjectServiceAccount:getProjectServiceAccount": _storage_agent,
    "gcp:storage/getBucket:getBucket": _bucket,
}


def _kind(token: str, context: grpc.ServicerContext) -> Kind:
    if token not in KINDS:
        _abort(context, f"no stand-in for the resource type {token}: add it to standin/kinds.py")
    return KINDS[token]


def _call_cloud(
    context: grpc.ServicerContext, kind: Kind, inputs: dict[str, Any], call: Callable[[], Answer]
) -> Answer:
    try:
        return call()
    except ApiError as error:
        _abort(context, f"1 error occurred:\n\t* {kind.wording(inputs, error)}\n\n")


def _abort(context: grpc.ServicerContext, message: str) -> Never:
    context.abort(grpc.StatusCode.UNKNOWN, message)
    raise AssertionError  # abort always raises; its stub lacks NoReturn


def _differences(
    kind: Kind, state: dict[str, Any], old: dict[str, Any], new: dict[str, Any]
) -> dict[str, Change]:
    managed = {
        name: value
        for name, value in state.items()
        if name in new or name in old.keys() - kind.kept
    }
    if isinstance(new.get("location"), str) and str(state.get("location")).isupper():
        # Buckets have their location in upper case, however it was written.
        new = {**new, "location": new["location"].upper()}
    return changes_between(managed, new)


def _property_diff(change: Change, replaces: bool) -> provider_pb2.PropertyDiff:
    # Each kind is followed by its variant for a change that replaces.
    return provider_pb2.PropertyDiff(kind=_KINDS_OF_CHANGE[change] + int(replaces))  # type: ignore[arg-type]


def _top(path: str) -> str:
    return path.partition(".")[0].partition("[")[0]


def _props(struct: struct_pb2.Struct) -> dict[str, Any]:
    props = _restore_integers(json_format.MessageToDict(struct))
    return {
        name: value
        for name, value in props.items()
        if value is not None and not name.startswith("__")
    }


def _restore_integers(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _restore_integers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_restore_integers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _struct(props: dict[str, Any]) -> struct_pb2.Struct:
    return json_format.ParseDict(props, struct_pb2.Struct())
