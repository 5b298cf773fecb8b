"""Ways around the names of `program_names`: modules as values, special attributes, and values of an update."""

import ast
from collections.abc import Iterator
from typing import Final

from tpucfg.infra.program_names import (
    BUILTINS,
    GUARDED_MODULES,
    NAMES,
    OWN_ATTRIBUTES,
    PATH_FUNCTIONS,
    SIMPLE_FUNCTIONS,
    Kind,
)

FoundName = tuple[int, str, Kind]
"""Line, name and kind."""
_SIMPLE: Final = (
    ast.JoinedStr,
    ast.FormattedValue,
    ast.Constant,
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.BinOp,
    ast.operator,
    ast.expr_context,
    ast.Dict,
    ast.List,
    ast.Tuple,
    ast.keyword,
    ast.Slice,
    ast.UnaryOp,
    ast.unaryop,
)
"""Parts of an expression that decide nothing and call nothing."""
_FOUND_ANYWAY: Final = frozenset().union(*NAMES.values(), *BUILTINS.values())


def guarded_names(tree: ast.Module) -> Iterator[FoundName]:
    """Yield the uses in a module, in any order."""
    owners = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 1)
        match node:
            case ast.Import(names=aliases):
                yield from (
                    (line, f"{alias.name} as {alias.asname}", "machine")
                    for alias in aliases
                    if alias.asname and alias.name in GUARDED_MODULES
                )
            case ast.ImportFrom(module=str(module), names=aliases, level=0):
                yield from (use for alias in aliases for use in _member(line, module, alias.name))
            case ast.Name(id=name) if name in GUARDED_MODULES and id(node) not in owners:
                yield line, name, "code"
            case ast.Name(id="getattr") if id(node) not in called:
                yield line, "getattr", "code"
            case ast.Attribute(attr=name):
                yield from _attribute(line, node, name)
                if name == "apply" and not _is_simple(called.get(id(node))):
                    yield line, "apply", "output"


def _attribute(line: int, node: ast.Attribute, name: str) -> Iterator[FoundName]:
    match node.value:
        case ast.Name(id=module) if module in GUARDED_MODULES:
            yield from _member(line, module, name)
        case ast.Attribute(value=ast.Name(id="os"), attr="path"):
            yield from _member(line, "os.path", name)
    if name.startswith("__") and name.endswith("__") and name not in OWN_ATTRIBUTES | _FOUND_ANYWAY:
        yield line, name, "code"


def _member(line: int, module: str, name: str) -> Iterator[FoundName]:
    """Yield a name of a guarded module that is not harmless."""
    harmless = PATH_FUNCTIONS if module == "os.path" else GUARDED_MODULES.get(module)
    if harmless is not None and name not in harmless | _FOUND_ANYWAY:
        yield line, f"{module}.{name}", "machine"


def _is_simple(call: ast.Call | None) -> bool:
    """Return True for `x.apply(lambda value: …)` that only calculates another value."""
    if call is None or len(call.args) != 1 or call.keywords:
        return False
    match call.args[0]:
        case ast.Lambda(body=body):
            return all(isinstance(part, _SIMPLE) or _is_simple_call(part) for part in ast.walk(body))
        case ast.Name(id=name):
            return name in SIMPLE_FUNCTIONS
    return False


def _is_simple_call(part: ast.AST) -> bool:
    match part:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in SIMPLE_FUNCTIONS
    return False
