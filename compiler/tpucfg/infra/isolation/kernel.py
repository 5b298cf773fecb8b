"""Calls of the C library that confine a process, each doing nothing where the system does not have it."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

# https://man7.org/linux/man-pages/man2/prctl.2.html
_SET_PARENT_DEATH_SIGNAL: Final = 1
_GET_DUMPABLE: Final = 3
_SET_DUMPABLE: Final = 4
_SET_CHILD_SUBREAPER: Final = 36
_SET_NO_NEW_PRIVILEGES: Final = 38
# https://man7.org/linux/man-pages/man2/unshare.2.html
_NEW_USER_NAMESPACE: Final = 0x10000000
_NEW_PID_NAMESPACE: Final = 0x20000000
# https://man7.org/linux/man-pages/man2/capset.2.html
_CAPABILITY_VERSION: Final = 0x20080522
_DAC_OVERRIDE: Final = 1 << 1
"""The capability by which root reads files of other users, such as a checkout that is mounted into a container."""


def call(function: str, *arguments: Any) -> int:
    """Call a function of the C library; return -1 if it fails, or if the library does not have it."""
    with suppress(OSError, AttributeError):
        # Integers as C's long, because variadic functions read eight bytes for each.
        longs = [ctypes.c_long(item) if isinstance(item, int) else item for item in arguments]
        return int(getattr(ctypes.CDLL(None, use_errno=True), function)(*longs))
    return -1


def prctl(option: int, value: Any, third: Any = 0) -> int:
    """Set an attribute of this process; return -1 on systems without such attributes."""
    return call("prctl", option, value, third, 0, 0) if sys.platform == "linux" else -1


def adopt_orphans() -> bool:
    """Make this process the parent of all descendants whose own parent ends, and return True if that is possible."""
    return prctl(_SET_CHILD_SUBREAPER, 1) == 0


def end_with_parent(signal: int) -> None:
    """Have this process receive a signal when its parent ends."""
    prctl(_SET_PARENT_DEATH_SIGNAL, signal)


def forbid_new_privileges() -> None:
    """Make programs that would start with more permissions, such as sudo, start with those of this process."""
    prctl(_SET_NO_NEW_PRIVILEGES, 1)


@contextmanager
def hidden_memory() -> Iterator[None]:
    """Hide memory, environment and open files of this process from other processes of its user, except root's."""
    previous = prctl(_GET_DUMPABLE, 0)
    prctl(_SET_DUMPABLE, 0)
    try:
        yield
    finally:
        if previous == 1:
            prctl(_SET_DUMPABLE, 1)


def hide_memory() -> None:
    """Hide memory, environment and open files of this process for its whole life."""
    prctl(_SET_DUMPABLE, 0)


def enter_pid_namespace() -> bool:
    """Have the next child start a process namespace that ends with it; return True if the system allows that.

    Without root, this takes a user namespace too, in which the user has the same id.
    """
    if sys.platform != "linux":
        return False
    user, group = os.getuid(), os.getgid()
    if call("unshare", _NEW_PID_NAMESPACE) == 0:
        return True
    if call("unshare", _NEW_USER_NAMESPACE | _NEW_PID_NAMESPACE) != 0:
        return False
    for file, content in {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}.items():
        # Without a map, files still have their owners; only the name of the user is unknown.
        with suppress(OSError):
            Path("/proc/self", file).write_text(content, encoding="ascii")
    return True


def drop_capabilities() -> None:
    """Give up all special permissions of root, except the one to read files of other users."""
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    # Two of effective, permitted and inheritable: for the capabilities 0 to 31, and for those from 32 on.
    current = (ctypes.c_uint32 * 6)()
    if sys.platform == "linux" and call("capget", header, current) == 0:
        kept = (ctypes.c_uint32 * 6)(current[0] & _DAC_OVERRIDE, current[1] & _DAC_OVERRIDE)
        call("capset", header, kept)
