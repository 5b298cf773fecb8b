"""The rules, by id: one row for each. A row's page is docs/findings/<id>.md, and a test holds the two together."""

from typing import Final, Literal, NamedTuple


class Rule(NamedTuple):
    """What every finding with one id has in common."""

    id: str
    level: Literal["error", "warning", "note"]
    title: str
    """What is wrong, in a few words and without the case's values."""
    allowable: bool = False
    """Whether `allow:` in the spec may turn it into a note: a judgement may be overruled, broken syntax may not."""


_ROWS: Final = (
    # The file and its text.
    Rule("TPU001", "error", "the file cannot be read"),
    Rule("TPU002", "error", "the text is not YAML"),
    Rule("TPU003", "error", "a key is written twice"),
    Rule("TPU004", "error", "an unknown key"),
    Rule("TPU005", "error", "a required key is missing"),
    Rule("TPU006", "error", "a value of the wrong type"),
    Rule("TPU007", "error", "a value that is not allowed"),
    Rule("TPU008", "error", "keys that exclude each other"),
    Rule("TPU009", "error", "an unknown or unclosed placeholder"),
    Rule("TPU010", "error", "a file beyond its bounds"),
    Rule("TPU011", "error", "YAML that a spec has no use for"),
    Rule("TPU012", "warning", "a placeholder where none is replaced", allowable=True),
    Rule("TPU013", "warning", "an allowed finding that did not occur"),
    # Sizes, regions, names.
    Rule("TPU020", "error", "a size that does not exist"),
    Rule("TPU021", "error", "a size that the region does not offer", allowable=True),
    Rule("TPU022", "error", "a zone outside the region, or without the size", allowable=True),
    Rule("TPU023", "error", "a ladder out of order"),
    Rule("TPU024", "error", "a size that the target does not take"),
    Rule("TPU025", "error", "an override or a zone for a size in no ladder"),
    Rule("TPU026", "error", "a machine that the size does not run on"),
    Rule("TPU027", "error", "a region that the target does not serve", allowable=True),
    Rule("TPU028", "error", "a bucket name that Cloud Storage refuses"),
    Rule("TPU029", "error", "two environments with one bucket"),
    Rule("TPU030", "error", "a name longer than its service takes"),
    Rule("TPU031", "warning", "data outside the environment's bucket", allowable=True),
    # The arithmetic of a rung.
    Rule("TPU040", "error", "a batch that does not divide over the cores"),
    Rule("TPU041", "warning", "a batch that grew a lot", allowable=True),
    Rule("TPU042", "warning", "few steps left", allowable=True),
    Rule("TPU043", "warning", "warm-up over much of the run", allowable=True),
    Rule("TPU044", "warning", "a checkpoint interval longer than the run", allowable=True),
    Rule("TPU045", "warning", "a learning rate kept while the batch grows", allowable=True),
    Rule("TPU046", "warning", "tuned on another generation", allowable=True),
    Rule("TPU047", "warning", "a per-core batch that changed", allowable=True),
    # The trainer and its flags.
    Rule("TPU050", "error", "a flag given twice"),
    Rule("TPU051", "error", "a trainer that the target does not run"),
    Rule("TPU052", "error", "a runtime without TPU support"),
    Rule("TPU053", "warning", "a local package without a build file", allowable=True),
    Rule("TPU054", "error", "a setting that excludes another"),
    # Services.
    Rule("TPU060", "warning", "a service that was shut down", allowable=True),
    Rule("TPU061", "warning", "a setting of a target that no environment uses", allowable=True),
    # A config, rendered here or written by somebody else.
    Rule("TPU070", "error", "a field that the API does not have"),
    Rule("TPU071", "error", "a field that the API requires is missing"),
    Rule("TPU072", "error", "a field of the wrong type"),
    Rule("TPU073", "error", "a value that the API does not know"),
    Rule("TPU074", "error", "a config that the service refuses for TPUs"),
    Rule("TPU079", "error", "a rendered text that differs from its job"),
    # Pulumi: stack files, outputs, and the resources that a stack would have.
    Rule("TPU080", "error", "a key of a stack file that nothing reads"),
    Rule("TPU081", "error", "a value that a stack file cannot have"),
    Rule("TPU082", "error", "a stack without an environment"),
    Rule("TPU083", "error", "a stack whose spec is not there"),
    Rule("TPU084", "error", "an output of a stack that differs from the spec"),
    Rule("TPU090", "error", "a resource outside the environment's region"),
    Rule("TPU091", "error", "a resource open to the public"),
    Rule("TPU092", "error", "access that overwrites what others granted"),
    Rule("TPU093", "error", "a resource that names no project"),
    Rule("TPU094", "error", "production that is not protected", allowable=True),
    Rule("TPU095", "error", "a basic role"),
    # The climb: what was measured, and the gate between two rungs.
    Rule("TPU100", "error", "a results file that cannot be read"),
    Rule("TPU101", "error", "a line of a results file that is not a record"),
    Rule("TPU102", "error", "a record that does not match its schema"),
    Rule("TPU103", "note", "records that are not counted"),
    Rule("TPU110", "error", "a rung whose predecessor has not passed"),
)

RULES: Final = {rule.id: rule for rule in _ROWS}
"""Every rule by its id, in the order of the ids."""
