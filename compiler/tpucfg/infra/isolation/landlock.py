"""Landlock: the Linux kernel refuses writes outside one folder, for a process and everything that it starts.

It needs no privilege and cannot be lifted: https://docs.kernel.org/userspace-api/landlock.html. Reads are not limited.
"""

import ctypes
import os
import sys
from pathlib import Path
from typing import Final

from tpucfg.infra.isolation import kernel

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""Numbers of the system calls, equal on all architectures."""
_GET_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_WRITE_FILE: Final = 1 << 1
_CHANGE_FOLDERS: Final = sum(1 << bit for bit in range(4, 13))
"""To remove and create files, folders, links, sockets, pipes and devices."""
_REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
_ACCESS_BY_VERSION: Final = ((1, _WRITE_FILE | _CHANGE_FOLDERS), (2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEVICE))
"""The accesses to refuse, with the first version that knows them."""
_SCOPES_VERSION: Final = 6
_SCOPES: Final = 0b11
"""Abstract sockets of other processes, and signals to them."""
_WRITABLE_DEVICE: Final = Path("/dev/null")


class _PathRule(ctypes.Structure):
    """The accesses that are allowed below an open folder."""

    _pack_ = 1
    _fields_ = (("allowed_access", ctypes.c_uint64), ("folder", ctypes.c_int32))


def version() -> int:
    """Return the kernel's version of Landlock; 0 if it has none."""
    return max(0, _system_call(_CREATE_RULESET, None, 0, _GET_VERSION)) if sys.platform == "linux" else 0


def limit_writes(folder: Path) -> bool:
    """Refuse this process, and everything it starts, all writes outside the folder; return False if it cannot be done.

    It also cannot signal, trace or read the memory of processes that it did not start.
    """
    known = version()
    refused = sum(access for first, access in _ACCESS_BY_VERSION if first <= known)
    if not known:
        return False
    attributes = (ctypes.c_uint64 * 3)(refused, 0, _SCOPES if known >= _SCOPES_VERSION else 0)
    rules = _system_call(_CREATE_RULESET, attributes, ctypes.sizeof(attributes), 0)
    if rules < 0:
        return False
    try:
        _allow(rules, folder, refused)
        _allow(rules, _WRITABLE_DEVICE, refused & (_WRITE_FILE | _TRUNCATE))
        return _system_call(_RESTRICT_SELF, rules, 0) == 0
    finally:
        os.close(rules)


def _allow(rules: int, path: Path, access: int) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _system_call(_ADD_RULE, rules, _PATH_BENEATH, ctypes.byref(_PathRule(access, descriptor)), 0)
    finally:
        os.close(descriptor)


def _system_call(number: int, *arguments: object) -> int:
    return kernel.call("syscall", number, *arguments)
