"""Validate data against a JSON Schema, and explain each mistake in a sentence."""

from tpucfg.schemas.validation import (
    CONFIG,
    SPEC,
    Problem,
    RuleIds,
    is_valid,
    limit_problems,
    load_schema,
    schema_findings,
    schema_problems,
)

__all__ = [
    "CONFIG",
    "SPEC",
    "Problem",
    "RuleIds",
    "is_valid",
    "limit_problems",
    "load_schema",
    "schema_findings",
    "schema_problems",
]
