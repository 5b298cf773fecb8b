"""Variables of a host that no secret can have, because programs outside of the container would read the value.

Docker takes the value of a secret from its own environment, and bash puts it there. So a variable that bash, the loader
or docker itself reads would never reach the program unchanged, or change how the container is started.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from tpucfg.catalog import Slice
from tpucfg.findings import Finding
from tpucfg.paths import first_match
from tpucfg.spec.project import Environment, Project
from tpucfg.text_format import dotted


class _Reader(NamedTuple):
    """The program on the host that reads a variable."""

    effect: str
    """The effect on the start of the container, as a clause."""
    source: str
    """The public page about the variable."""


_BASH: Final = "https://www.gnu.org/software/bash/manual/html_node/Bash-Variables.html"
_SHELL: Final = _Reader("the shell on the host sets it itself", _BASH)
_START: Final = _Reader("the shell on the host would behave in another way", _BASH)
_SCRIPT: Final = _Reader("the start-up script uses it", "https://cloud.google.com/tpu/docs/run-in-container")
_LOADER: Final = _Reader(
    "every program on the host would load other libraries", "https://man7.org/linux/man-pages/man8/ld.so.8.html"
)
_DOCKER: Final = _Reader(
    "docker on the host would connect, or authenticate, in another way",
    "https://docs.docker.com/reference/cli/docker/#environment-variables",
)
_SET_BY_BASH: Final = (
    "_ BASHOPTS BASHPID BASH_* COPROC DIRSTACK EPOCHREALTIME EPOCHSECONDS EUID FUNCNAME GROUPS HISTCMD LINENO OPTIND"
    " PIPESTATUS PPID RANDOM SECONDS SHELLOPTS SHLVL SRANDOM UID"
)
_READ_BY_BASH: Final = "CDPATH ENV GLOBIGNORE IFS PATH POSIXLY_CORRECT"
_READ_BY_DOCKER: Final = "DOCKER_* HOME GODEBUG XDG_RUNTIME_DIR"

_READERS: Final[Mapping[str, _Reader]] = {
    **dict.fromkeys(_SET_BY_BASH.split(), _SHELL),
    **dict.fromkeys(_READ_BY_BASH.split(), _START),
    **dict.fromkeys(("LD_*", "GCONV_PATH", "GLIBC_TUNABLES"), _LOADER),
    **dict.fromkeys(_READ_BY_DOCKER.split(), _DOCKER),
    "tpucfg_*": _SCRIPT,
}
"""Variables by name; a final `*` stands for any rest."""


def secret_findings(
    project: Project, environment: Environment, slices: Sequence[Slice], target: str
) -> Iterator[Finding]:
    """Yield an error for each secret in a variable of the host, once for each layer that names it."""
    paths = {}
    for slice_ in slices:
        settings = project.settings[environment.name, slice_.size]
        for secret in settings.trainer.secrets:
            if reader := _reader(secret.variable):
                paths[settings.source(("trainer", "secrets", secret.variable))] = (secret.variable, reader)
    for path, (variable, reader) in paths.items():
        yield Finding.of(
            "TPU059",
            f"{target} cannot set {variable} from Secret Manager: {reader.effect}",
            project.document.key_location(path),
            help=f"rename {dotted(path)}, for example to TRAINER_{variable}, and read that in the program",
            details=(f"see {reader.source}",),
        )


def _reader(variable: str) -> _Reader | None:
    return first_match(_READERS.items(), (variable,))
