"""A filter of system calls: a process, and everything it starts, can open no connection and touch no other process.

Landlock does not limit sockets of the file system: a service behind one, such as Docker's, would write for the process.
"""

import ctypes
import errno
import platform
import sys
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from tpucfg.infra.isolation import kernel

_SET_FILTER: Final = 22
_FILTER_MODE: Final = 2
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
"""Instructions: https://docs.kernel.org/networking/filter.html."""
_ALLOW: Final = 0x7FFF0000
_REFUSE: Final = 0x00050000 | errno.EACCES
_NUMBER_OFFSET, _ARCHITECTURE_OFFSET, _ARGUMENTS_OFFSET = 0, 4, 16
"""Fields of the call: https://docs.kernel.org/userspace-api/seccomp_filter.html."""
_X32_CALLS: Final = 0x40000000
"""Numbers from here on are the same calls on x86-64, in another form."""
_FAST_OPEN: Final = 0x20000000
"""The flag by which sending opens a connection."""
_INTERNET_FAMILIES: Final = (2, 10)
_NETLINK_FAMILY: Final = 16
"""Questions to the kernel about its own network, which libraries ask before they listen."""
_SOCKET_TYPES: Final = 0xF


class _Architecture(NamedTuple):
    """The numbers of the calls of one architecture."""

    audit: int
    socket: int
    send_flags: Mapping[int, int]
    """By call, the position of the argument that has the flags."""
    refused: tuple[int, ...]
    """connect, ptrace, process_vm_readv, process_vm_writev, io_uring_setup, pidfd_getfd, bpf."""


_ARCHITECTURES: Final[Mapping[str, _Architecture]] = {
    "x86_64": _Architecture(0xC000003E, 41, {44: 3, 46: 2, 307: 3}, (42, 101, 310, 311, 425, 438, 321)),
    "aarch64": _Architecture(0xC00000B7, 198, {206: 3, 211: 2, 269: 3}, (203, 117, 270, 271, 425, 438, 280)),
}


class _Instruction(ctypes.Structure):
    """One instruction of the filter."""

    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    """The filter."""

    _fields_ = (("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(_Instruction)))


def refuse_connections() -> bool:
    """Install the filter; return False if the system has none, or an architecture whose calls are not known here.

    The process must have given up new privileges before.
    """
    architecture = _ARCHITECTURES.get(platform.machine()) if sys.platform == "linux" else None
    if architecture is None:
        return False
    instructions = [*_filter(architecture)]
    array = (_Instruction * len(instructions))(*(_Instruction(*fields) for fields in instructions))
    return kernel.prctl(_SET_FILTER, _FILTER_MODE, ctypes.byref(_Program(len(array), array))) == 0


def _filter(architecture: _Architecture) -> Iterator[tuple[int, int, int, int]]:
    """Yield the instructions. A jump skips as many instructions as its fields have."""
    refuse, allow = (_RETURN, 0, 0, _REFUSE), (_RETURN, 0, 0, _ALLOW)
    yield (_LOAD, 0, 0, _ARCHITECTURE_OFFSET)
    yield (_IF_EQUAL, 1, 0, architecture.audit)
    yield refuse
    yield (_LOAD, 0, 0, _NUMBER_OFFSET)
    yield (_IF_AT_LEAST, 0, 1, _X32_CALLS)
    yield refuse
    for number in architecture.refused:
        yield (_IF_EQUAL, 0, 1, number)
        yield refuse
    for number, position in architecture.send_flags.items():
        yield (_IF_EQUAL, 0, 4, number)
        yield (_LOAD, 0, 0, _ARGUMENTS_OFFSET + 8 * position)
        yield (_IF_BITS, 0, 1, _FAST_OPEN)
        yield refuse
        yield allow
    yield (_IF_EQUAL, 1, 0, architecture.socket)
    yield allow
    yield from _socket_filter(refuse, allow)


def _socket_filter(
    refuse: tuple[int, int, int, int], allow: tuple[int, int, int, int]
) -> Iterator[tuple[int, int, int, int]]:
    """Yield the instructions for `socket`: the program's own server may listen, as Pulumi's library does."""
    yield (_LOAD, 0, 0, _ARGUMENTS_OFFSET)
    yield (_IF_EQUAL, 0, 1, _NETLINK_FAMILY)
    yield allow
    first, second = _INTERNET_FAMILIES
    yield (_IF_EQUAL, 2, 0, first)
    yield (_IF_EQUAL, 1, 0, second)
    yield refuse
    yield (_LOAD, 0, 0, _ARGUMENTS_OFFSET + 8)
    # The types are numbers and not bits: 1 is a stream, 2 are datagrams, 3 is raw, 5 is a sequence of packets.
    yield (_IF_BITS, 0, 1, _SOCKET_TYPES ^ 1)
    yield refuse
    yield allow
