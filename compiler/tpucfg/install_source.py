"""The requirement with which another machine installs this program: from where it came from, pinned by its content.

An installer records the origin of a package in `direct_url.json`:
https://packaging.python.org/en/latest/specifications/direct-url/.
"""

import json
import re
from typing import Any, Final

from tpucfg import __version__

RELEASED: Final = False
"""True once the name `tpucfg` on the package index belongs to this project.

Until then anyone could register it, and their program would run in every workflow that installs the name.
"""
INSTALL_INFRA: Final = f"pip install '{'tpucfg' if RELEASED else '/path/to/clone'}[infra]'"
"""The command that adds Pulumi's packages."""
FORMS: Final = (
    "git+https://HOST/PATH@COMMIT, with all 40 digits of the commit",
    "https://HOST/PATH/tpucfg-VERSION-py3-none-any.whl#sha256=HASH",
)
"""The two forms of an address whose content cannot change."""
EXAMPLE: Final = "git+https://github.com/OWNER/tpucfg@COMMIT"

# Only characters that need no quotes in a shell or in YAML. There is no user or password: the address is committed.
_PATH: Final = r"https://[A-Za-z0-9.-]+(?::[0-9]+)?/[A-Za-z0-9._~/%+-]+"
_GIT: Final = re.compile(rf"git\+{_PATH}@(?:[0-9a-f]{{40}}|[0-9a-f]{{64}})")
_ARCHIVE: Final = re.compile(rf"{_PATH}/tpucfg-[A-Za-z0-9._%+-]+\.(?:whl|tar\.gz)#sha256=[0-9a-f]{{64}}")
_FOLDER: Final = "this tpucfg was installed from a folder, which other machines do not have"


class UnknownSourceError(Exception):
    """Another machine cannot install this program from where it came from; the message is the reason."""


def requirement_of(address: str) -> str:
    """Return the requirement for an address in one of FORMS.

    Raises:
        ValueError: The address has another form.
    """
    if not (_GIT.fullmatch(address) or _ARCHIVE.fullmatch(address)):
        raise ValueError(address)
    return f"tpucfg[infra] @ {address}"


def installed_requirement() -> str:
    """Return the requirement for the origin of this installation.

    Raises:
        UnknownSourceError: It is not known, or only this machine can read it.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        origin = distribution("tpucfg").read_text("direct_url.json")
    except PackageNotFoundError:
        raise UnknownSourceError(_FOLDER) from None
    if origin is not None:
        return requirement_of_origin(origin)
    if not RELEASED:
        raise UnknownSourceError("the name tpucfg on the package index does not belong to this project yet")
    return f"tpucfg[infra]=={__version__}"


def requirement_of_origin(origin: str) -> str:
    """Return the requirement for the content of a `direct_url.json`.

    Raises:
        UnknownSourceError: The origin is not public, or not pinned.
    """
    try:
        fields = json.loads(origin)
        if "dir_info" in fields:
            raise UnknownSourceError(_FOLDER)
        return requirement_of(_address(fields))
    except (ValueError, TypeError, AttributeError, KeyError):
        raise UnknownSourceError("this tpucfg was not installed from a public, pinned address") from None


def _address(origin: Any) -> str:
    if "vcs_info" in origin:
        return f"{origin['vcs_info']['vcs']}+{origin['url']}@{origin['vcs_info']['commit_id']}"
    return f"{origin['url'].partition('#')[0]}#sha256={origin['archive_info']['hashes']['sha256']}"
