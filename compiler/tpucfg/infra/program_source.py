"""Search of a stack program's source for names of `program_names`, without running it.

Only names as they are written are found: a program that composes them is not seen.
"""

import ast
import os
import re
import sys
from collections.abc import Iterator, Mapping
from importlib.machinery import PathFinder
from itertools import islice, pairwise
from pathlib import Path
from typing import Final, NamedTuple

from tpucfg.fs import is_directory, is_file, open_regular_file, sorted_glob
from tpucfg.infra.program_guards import guarded_names
from tpucfg.infra.program_names import (
    ALLOWED_MODULES,
    BUILTINS,
    HARMLESS_MODULES,
    IMPORTED_ONLY,
    MODULES,
    NAMES,
    Kind,
)
from tpucfg.infra.stack_program import StackProgram
from tpucfg.package_data import data_folder

_MAX_FILES: Final = 500
_MAX_BYTES: Final = 2**20
_MAX_USES: Final = 1000
_MOCK: Final = re.compile(r"\w{0,40}mock\w{0,40}", re.IGNORECASE)
"""A word that can be compared with the name of a class of mocks."""
_COMPILED: Final = (".so", ".pyc", ".pyd")


def _by_name(table: Mapping[Kind, frozenset[str]]) -> dict[str, Kind]:
    return {name: kind for kind, names in table.items() for name in names}


_BUILTINS: Final = _by_name(BUILTINS)
_MODULES: Final = _by_name(MODULES)
_NAMES: Final = _by_name(NAMES) | {name: kind for name, kind in _MODULES.items() if name not in IMPORTED_ONLY}


class Use(NamedTuple):
    """A name in the source of a program."""

    file: str
    """Relative to the folder above the program."""
    line: int
    name: str
    kind: Kind


class _Source(NamedTuple):
    """A file of the program, read once."""

    path: Path
    content: bytes | None
    """None for a file that is too large or unreadable."""
    tree: ast.Module | None
    """The syntax; None if it has none, or is too deep to be read."""


def read_uses(program: StackProgram) -> tuple[Use, ...]:
    """Return the uses of the names in the modules that the program imports from its own folder, by file and line.

    Files that equal those of the bundled program are not searched: they come with tpucfg.
    """
    folder = program.folder
    uses = (use for source in _sources(folder) for use in _uses_in(source, folder))
    return (*_shadows(folder), *sorted(islice(uses, _MAX_USES)))


def _shadows(folder: Path) -> Iterator[Use]:
    """Yield the modules of the program that take the place of others.

    Under review, many modules are imported already when the program starts. In an update, an import anywhere, even in
    an installed package, finds the program's own folder first.
    """
    own = (folder, data_folder("stacks").resolve())
    places = [place for place in sys.path if place and Path(place).resolve() not in own]
    for path in sorted_glob(folder, "*")[:_MAX_FILES]:
        name = path.name.partition(".")[0]
        is_module = path.suffix in (".py", *_COMPILED) or is_directory(path)
        if is_module and name.isidentifier() and name not in {"__main__", "__init__", "__pycache__"}:
            spec = PathFinder.find_spec(name, places)
            if name in sys.stdlib_module_names or (spec is not None and spec.origin is not None):
                yield Use(os.path.relpath(path, folder.parent), 1, name, "shadow")


def _sources(folder: Path) -> Iterator[_Source]:
    """Yield the files of `__main__`, and of each module of the folder that is imported from there on."""
    waiting, known = ["__main__"], {"__main__"}
    files: set[Path] = set()
    while waiting and len(files) < _MAX_FILES:
        for path in _files_of(folder, waiting.pop()):
            if path in files:
                continue
            files.add(path)
            source = _read_source(path)
            yield source
            new = {*_imported_modules(source, folder)} - known
            known |= new
            waiting += sorted(new)


def _files_of(folder: Path, module: str) -> Iterator[Path]:
    """Yield the files of a module that exist, and the `__init__.py` of each package that it is in."""
    *packages, last = module.split(".")
    place = folder.joinpath(*packages, last)
    candidates = [folder.joinpath(*packages[: depth + 1], "__init__.py") for depth in range(len(packages))]
    candidates += [place.with_name(f"{last}.py"), place / "__init__.py"]
    candidates += [path for suffix in _COMPILED for path in sorted(place.parent.glob(f"{last}.*{suffix}"))]
    candidates += [place.with_name(f"{last}{suffix}") for suffix in _COMPILED]
    return filter(is_file, candidates)


def _imported_modules(source: _Source, folder: Path) -> Iterator[str]:
    package = source.path.parent.relative_to(folder).parts
    for node in ast.walk(source.tree or ast.Module([], [])):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*base, *filter(None, [node.module])])
            names = [module, *(f"{module}.{alias.name}".removeprefix(".") for alias in node.names)]
            yield from filter(None, names)


def _uses_in(source: _Source, folder: Path) -> Iterator[Use]:
    bundled = data_folder("stacks") / source.path.relative_to(folder)
    if is_file(bundled) and _read(bundled) == source.content:
        return
    shown, tree = os.path.relpath(source.path, folder.parent), source.tree
    if tree is None:
        yield Use(shown, 1, "a file without readable source", "code")
        return
    for node in ast.walk(tree):
        names = dict(_names(node))
        for name in _unknown_modules(node, folder):
            names.setdefault(name, "module")
        for name, kind in names.items():
            yield Use(shown, getattr(node, "lineno", 1), name, kind)
    yield from (Use(shown, line, name, kind) for line, name, kind in guarded_names(tree))


def _unknown_modules(node: ast.AST, folder: Path) -> Iterator[str]:
    """Yield the imported modules that are neither known to be harmless, nor reported by name, nor the program's own."""
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        names = [node.module]
    for name in names:
        top = name.partition(".")[0]
        is_known = top in HARMLESS_MODULES or top in _MODULES or top.startswith("pulumi_")
        if not is_known and not is_directory(folder / top) and not any(_files_of(folder, top)):
            yield name


def _read_source(path: Path) -> _Source:
    content = _read(path)
    if content is None or path.suffix in _COMPILED:
        return _Source(path, content, None)
    try:
        return _Source(path, content, ast.parse(content))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _Source(path, content, None)


def _read(path: Path) -> bytes | None:
    try:
        with open_regular_file(path) as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError:
        return None
    return content if len(content) <= _MAX_BYTES else None


def _names(node: ast.AST) -> Iterator[tuple[str, Kind]]:
    """Yield the names that one part of the source uses, with their kinds."""
    match node:
        case ast.Import(names=aliases):
            yield from _module_names(*(alias.name for alias in aliases))
        case ast.ImportFrom(module=str(module), names=aliases, level=0):
            yield from _module_names(*(f"{module}.{alias.name}" for alias in aliases))
            yield from _known(_NAMES, *(name for alias in aliases for name in _ends(f"{module}.{alias.name}")))
        case ast.Name(id=name):
            yield from _known(_NAMES | _BUILTINS, name)
        case ast.Attribute(value=ast.Name(id=owner) | ast.Attribute(attr=owner), attr=name):
            yield from _known(_NAMES, name, f"{owner}.{name}")
        case ast.Attribute(attr=name):
            yield from _known(_NAMES, name)
        case ast.Constant(value=str(text)) if _NAMES.get(text) == "watched" or _MOCK.fullmatch(text):
            # As in getattr(runtime, "MockMonitor").
            yield text, "watched"
        case ast.Call(func=ast.Name(id="getattr"), args=[_, attribute, *_]) if not isinstance(attribute, ast.Constant):
            yield "getattr", "code"


def _known(table: Mapping[str, Kind], *names: str) -> Iterator[tuple[str, Kind]]:
    return ((name, table[name]) for name in names if name in table)


def _module_names(*modules: str) -> Iterator[tuple[str, Kind]]:
    """Yield the known modules that an import of other modules includes."""
    for module in modules:
        parents = [module[:end] for end in (*_dots(module), len(module))]
        if not ALLOWED_MODULES.intersection(parents):
            yield from _known(_MODULES, *parents)


def _dots(module: str) -> list[int]:
    return [index for index, char in enumerate(module) if char == "."]


def _ends(name: str) -> Iterator[str]:
    """Yield the last name of a dotted one, and the last two."""
    *_, (owner, last) = pairwise(name.split("."))
    yield from (last, f"{owner}.{last}")
