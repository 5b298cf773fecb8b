"""A stand-in for `pulumi-language-python`, for machines with the engine but without Pulumi's installer.

`pulumi up` starts the host of the project's language, reads a port from its output and requests a run of the program.
This one runs the program in its own process, with its own interpreter; of the project's `virtualenv` it only requires
that it is there. For tests only: if the real host is on the PATH, the tests use that one.
"""

import os
import runpy
import stat
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
from google.protobuf import empty_pb2
from pulumi.automation._server import LanguageServer
from pulumi.runtime import settings
from pulumi.runtime.proto import language_pb2, language_pb2_grpc, plugin_pb2

NAME = "pulumi-language-python"


class LanguageHost(LanguageServer):
    """The SDK's server of inline programs, for a program on disk."""

    def __init__(self) -> None:
        super().__init__(lambda: None)

    def Handshake(
        self, request: language_pb2.LanguageHandshakeRequest, context: grpc.ServicerContext
    ) -> language_pb2.LanguageHandshakeResponse:
        """Answer the engine's greeting."""
        return language_pb2.LanguageHandshakeResponse()

    def GetPluginInfo(
        self, request: empty_pb2.Empty, context: grpc.ServicerContext
    ) -> plugin_pb2.PluginInfo:
        """Return a version that is no release."""
        return plugin_pb2.PluginInfo(version="0.0.0")

    def Run(
        self, request: language_pb2.RunRequest, context: grpc.ServicerContext
    ) -> language_pb2.RunResponse:
        """Run the project's program like the real host: in its folder, which is first on the path."""
        options = request.info.options
        if "virtualenv" in options and not _has_python(
            Path(request.info.root_directory, str(options["virtualenv"]))
        ):
            return language_pb2.RunResponse(
                error=f"the virtualenv {options['virtualenv']} is not beside the project file"
            )
        folder = request.info.program_directory
        os.chdir(folder)
        sys.path.insert(0, folder)

        def program() -> None:
            # The server of inline programs, which have no project on disk, leaves it out.
            settings.SETTINGS.root_directory = request.info.root_directory
            runpy.run_path(folder, run_name="__main__")

        self.program = program
        return super().Run(request, context)  # type: ignore[no-any-return, no-untyped-call]


def _has_python(environment: Path) -> bool:
    """Return True for a virtual environment: https://github.com/pulumi/pulumi, sdk/python/toolchain/pip.go."""
    return (environment / "bin/python").is_file()


def install(folder: Path) -> Path:
    """Write a `pulumi-language-python` that starts this module, and return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / NAME
    script.write_text(
        f'#!/bin/sh\nPYTHONPATH="{Path(__file__).parents[1]}" exec "{sys.executable}" -m standin.language_host "$@"\n'
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return folder


def main() -> None:
    """Serve until the engine stops this process."""
    server = grpc.server(ThreadPoolExecutor(max_workers=4))
    language_pb2_grpc.add_LanguageRuntimeServicer_to_server(LanguageHost(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    server.start()
    # The engine stops its hosts with an interrupt, after an error also a host whose program still runs. The real host
    # interrupts the program then. Here both are one process, which ends at once: an interpreter that shuts down starts
    # no more threads, and the SDK would report that as an error of the program.
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        os._exit(0)


if __name__ == "__main__":
    main()
