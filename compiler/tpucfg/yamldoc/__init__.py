"""Read YAML and JSON with the location of every key and value, and write values as YAML.

A text is read as a stream of parser events, so nothing in it is ever constructed or evaluated, and its size, depth and
repetition are bounded while it is read. The reader and the writer import a parser, so they are imported by themselves.
"""

from tpucfg.yamldoc.document import (
    Assignment,
    Document,
    KeyPath,
    Mark,
    Node,
    count_values_and_depth,
    without_nulls,
)

__all__ = [
    "Assignment",
    "Document",
    "KeyPath",
    "Mark",
    "Node",
    "count_values_and_depth",
    "without_nulls",
]
