"""The part of SARIF 2.1.0 that tpucfg writes, closed: https://docs.oasis-open.org/sarif/sarif/v2.1.0/.

Names, types and bounds are those of the standard's sections 3.13 (sarifLog), 3.14 (run), 3.18 and 3.19 (tool), 3.27
(result), 3.28 to 3.30 (location, physicalLocation, region), 3.49 (reportingDescriptor) and 3.50 (its configuration).
"""

from typing import Any, Final


def _closed(required: str, optional: str = "", /, **properties: Any) -> dict[str, Any]:
    assert {*required.split(), *optional.split()} == set(properties)
    return {
        "type": "object",
        "additionalProperties": False,
        "required": required.split(),
        "properties": properties,
    }


_TEXT: Final = {"type": "string", "minLength": 1}
_MESSAGE: Final = _closed("text", text=_TEXT)
_COUNT: Final = {"type": "integer", "minimum": 1}
_LEVEL: Final = {"enum": ["none", "note", "warning", "error"]}
_REGION: Final = _closed(
    "startLine startColumn endLine endColumn",
    startLine=_COUNT,
    startColumn=_COUNT,
    endLine=_COUNT,
    endColumn=_COUNT,
)
_URI: Final = {"type": "string", "pattern": r"^[A-Za-z0-9_.~/%-]+$"}
_PHYSICAL: Final = _closed(
    "artifactLocation region", artifactLocation=_closed("uri", uri=_URI), region=_REGION
)
_RULE: Final = _closed(
    "id shortDescription help defaultConfiguration",
    id={"type": "string", "pattern": "^TPU[0-9]{3}$"},
    shortDescription=_MESSAGE,
    help=_closed("text markdown", text=_TEXT, markdown=_TEXT),  # 3.12, multiformatMessageString
    defaultConfiguration=_closed("level", level=_LEVEL),
)
_RESULT: Final = _closed(
    "ruleId ruleIndex level message locations",
    "relatedLocations",
    ruleId=_TEXT,
    ruleIndex={"type": "integer", "minimum": 0},
    level=_LEVEL,
    message=_MESSAGE,
    locations={
        "type": "array",
        "minItems": 1,
        "items": _closed("physicalLocation", physicalLocation=_PHYSICAL),
    },
    relatedLocations={
        "type": "array",
        "minItems": 1,
        "uniqueItems": True,
        "items": _closed(
            "id message physicalLocation", id=_COUNT, message=_MESSAGE, physicalLocation=_PHYSICAL
        ),
    },
)
_DRIVER: Final = _closed(
    "name semanticVersion rules",
    name=_TEXT,
    semanticVersion=_TEXT,
    rules={"type": "array", "uniqueItems": True, "items": _RULE},
)
_SCHEMA: Final[dict[str, Any]] = {
    "$schema": {"type": "string", "pattern": r"^https://.*sarif-schema-2\.1\.0\.json$"}
}
WRITTEN: Final = _closed(
    "$schema version runs",
    **_SCHEMA,
    version={"const": "2.1.0"},
    runs={
        "type": "array",
        "minItems": 1,
        "maxItems": 1,
        "items": _closed(
            "tool columnKind results",
            tool=_closed("driver", driver=_DRIVER),
            columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
            results={"type": "array", "items": _RESULT},
        ),
    },
)
"""A whole log."""
