"""The table of rules by id. Each rule has a section in a page of docs/findings; a test compares titles and levels."""

from typing import Final, Literal

from tpucfg.named_tuple import NamedTuple

Level = Literal["error", "warning", "note"]


class Rule(NamedTuple):
    """The properties that all findings with one id share."""

    id: str
    level: Level
    title: str
    """The mistake in a few words, without the values of a case."""
    allowable: bool = False
    """True if `allow` in the spec may turn a finding into a note, because the rule is a judgment."""
    only_by_path: bool = False
    """True if `allow` has to name the place, because the next finding may be no judgment."""
    stops_stack: bool = False
    """True if an error stops `pulumi up`: resources, or what may use them, follow from what it is about."""


_ROWS: Final = (
    # The file, its text and its structure.
    Rule("TPU001", "error", "the file cannot be read", stops_stack=True),
    Rule("TPU002", "error", "the text is not YAML", stops_stack=True),
    Rule("TPU003", "error", "a duplicate key", stops_stack=True),
    Rule("TPU004", "error", "an unknown key", stops_stack=True),
    Rule("TPU005", "error", "a required key is missing", stops_stack=True),
    Rule("TPU006", "error", "a value of the wrong type", stops_stack=True),
    Rule("TPU007", "error", "a value that is not allowed", stops_stack=True),
    Rule("TPU008", "error", "keys that exclude each other", stops_stack=True),
    Rule("TPU009", "error", "an unknown or unclosed placeholder", stops_stack=True),
    Rule("TPU010", "error", "a file beyond the limits", stops_stack=True),
    Rule("TPU011", "error", "an unsupported feature of YAML", stops_stack=True),
    Rule("TPU012", "warning", "a placeholder where none is replaced", allowable=True),
    Rule("TPU013", "warning", "an allowed finding that did not occur"),
    Rule("TPU014", "error", "a capacity set by an environment and by a size"),
    Rule("TPU015", "error", "a removal of something that is not set", stops_stack=True),
    Rule("TPU016", "warning", "XLA flags that no rung gets", allowable=True),
    Rule("TPU017", "error", "a credential in the spec", allowable=True, only_by_path=True),
    # Sizes, regions and names.
    Rule("TPU020", "error", "a size that does not exist", stops_stack=True),
    Rule(
        "TPU021", "error", "a size that the region does not offer", allowable=True, stops_stack=True
    ),
    Rule("TPU022", "error", "a zone outside the region, or without the size", allowable=True),
    Rule("TPU023", "error", "a ladder out of order"),
    Rule("TPU024", "error", "a size that the target does not support"),
    Rule("TPU025", "error", "an override or a zone for a size in no ladder"),
    Rule("TPU026", "error", "a machine or a topology that the size does not have"),
    Rule(
        "TPU027",
        "error",
        "a region that the target does not serve",
        allowable=True,
        stops_stack=True,
    ),
    Rule("TPU028", "error", "a bucket name that Cloud Storage refuses", stops_stack=True),
    Rule("TPU029", "error", "two environments with one bucket", stops_stack=True),
    Rule("TPU030", "error", "a name longer than its service allows", stops_stack=True),
    Rule("TPU031", "warning", "data outside the environment's bucket", allowable=True),
    # Figures in the command line of the program.
    Rule("TPU032", "error", "a number written for a figure", allowable=True),
    Rule("TPU033", "warning", "a number in a text that may mean a figure", allowable=True),
    Rule("TPU034", "warning", "a figure that the program does not get", allowable=True),
    # Regions of clusters and buckets.
    Rule("TPU035", "error", "a cluster outside the environment's region", stops_stack=True),
    Rule("TPU036", "warning", "a bucket to read in another region", allowable=True),
    # The arithmetic of a rung, and its processes.
    Rule("TPU040", "error", "a batch that does not divide over the replicas"),
    Rule("TPU041", "warning", "a batch that grew a lot", allowable=True),
    Rule("TPU042", "warning", "few steps left", allowable=True),
    Rule("TPU043", "warning", "warm-up over much of the run", allowable=True),
    Rule("TPU044", "warning", "a checkpoint interval longer than the run", allowable=True),
    Rule("TPU045", "warning", "a learning rate kept while the batch grows", allowable=True),
    Rule("TPU046", "warning", "tuned on another generation", allowable=True),
    Rule("TPU047", "warning", "a micro-batch that shrinks", allowable=True),
    Rule("TPU048", "error", "a model parallelism that does not divide a slice"),
    Rule("TPU049", "warning", "a JAX whose processes do not find each other", allowable=True),
    # The trainer and its flags.
    Rule("TPU050", "error", "a flag given twice"),
    Rule("TPU051", "error", "a trainer that the target does not run"),
    Rule("TPU052", "error", "a runtime without TPU support"),
    Rule("TPU053", "warning", "a local package without a build file", allowable=True),
    Rule("TPU054", "error", "a setting that excludes another"),
    # Capacity, and settings that a target does not have.
    Rule("TPU055", "error", "a capacity that the target does not offer"),
    Rule("TPU056", "warning", "a capacity that Google's pages leave open", allowable=True),
    Rule("TPU057", "error", "flex-start without a run duration that it accepts"),
    Rule("TPU058", "warning", "spot capacity without checkpoints", allowable=True),
    Rule("TPU059", "error", "a setting of the trainer that the target does not have"),
    # Services, unused settings, and the inputs of `tpucfg fit`.
    Rule("TPU060", "warning", "a service that was shut down", allowable=True),
    Rule("TPU061", "warning", "a setting that no job reads", allowable=True),
    Rule("TPU062", "error", "no training step to compile"),
    Rule("TPU063", "error", "a slice that the compiler has no topology for"),
    Rule("TPU064", "warning", "hosts that cannot install what their image lacks", allowable=True),
    # Values that the service or the plan decides.
    Rule(
        "TPU065", "error", "a variable that the TPU runtime gets from the service", allowable=True
    ),
    Rule("TPU066", "error", "a field of extra that the plan decides"),
    Rule("TPU067", "error", "a field of extra that gets other machines or another end"),
    Rule("TPU068", "error", "a field of extra that adds machines or chips"),
    # Configs, rendered by tpucfg or written by hand.
    Rule("TPU070", "error", "a field that the API does not have"),
    Rule("TPU071", "error", "a field that the API requires is missing"),
    Rule("TPU072", "error", "a field of the wrong type"),
    Rule("TPU073", "error", "a value that the API does not know"),
    Rule("TPU074", "error", "a config that the service refuses for TPUs"),
    Rule("TPU079", "error", "a rendered text that differs from its job"),
    # Pulumi stacks: their files, resources and grants.
    Rule("TPU080", "error", "an unknown key in a stack file", stops_stack=True),
    Rule("TPU081", "error", "an invalid value in a stack file", stops_stack=True),
    Rule("TPU082", "error", "a stack without an environment", stops_stack=True),
    Rule("TPU083", "error", "a stack whose spec does not exist", stops_stack=True),
    Rule("TPU084", "error", "a stack output that differs from the spec"),
    Rule("TPU085", "warning", "a stack file that Pulumi or a review does not read"),
    Rule("TPU086", "warning", "a secret without a version"),
    Rule("TPU087", "warning", "a mount that the stack does not grant", allowable=True),
    Rule("TPU088", "warning", "a grant to a default service account", allowable=True),
    Rule("TPU089", "warning", "a grant to a person", allowable=True),
    Rule("TPU090", "error", "a resource outside the environment's region"),
    Rule("TPU091", "error", "a resource open to the public"),
    Rule("TPU093", "error", "a resource without a project"),
    Rule("TPU094", "error", "an unprotected production bucket", allowable=True),
    Rule("TPU095", "error", "a grant of a basic role"),
    Rule("TPU096", "error", "a lifecycle rule that deletes data", allowable=True),
    Rule(
        "TPU097", "error", "a production bucket whose objects are deleted for good", allowable=True
    ),
    Rule("TPU098", "error", "a role that takes over accounts or grants access", allowable=True),
    # Recorded results.
    Rule("TPU100", "error", "a results file that cannot be read"),
    Rule("TPU101", "error", "a line of a results file that is not a record"),
    Rule("TPU102", "error", "a record that does not match its schema"),
    Rule("TPU103", "note", "records that are not counted"),
    # Each later id is the next free one, whatever its subject: docs/findings groups the rules by subject.
    Rule("TPU105", "error", "a training step that does not fit"),
    Rule("TPU106", "warning", "little memory left", allowable=True),
    Rule("TPU107", "note", "a rung whose fit is not known"),
    Rule("TPU108", "warning", "a record faster than the TPU can be", allowable=True),
    Rule("TPU109", "error", "a file of fits that cannot be read"),
    Rule("TPU110", "error", "a rung whose predecessor has not passed"),
    Rule("TPU111", "error", "a rung that is not known to fit"),
    Rule("TPU112", "error", "an XLA flag that the compiler does not know"),
    Rule("TPU113", "error", "a placeholder without a value", stops_stack=True),
    Rule("TPU114", "error", "a Python that cannot compile for TPUs"),
    Rule("TPU115", "error", "a machine that cannot compile for TPUs"),
    Rule("TPU116", "error", "a step that cannot be loaded"),
    Rule("TPU117", "error", "a step that fails, or returns something else"),
    Rule("TPU118", "error", "a compilation that ended early"),
    Rule("TPU119", "error", "a step that the compiler refuses"),
    Rule("TPU121", "warning", "a boot disk that stays, or is too small", allowable=True),
    Rule("TPU122", "warning", "a program with the account of its nodes", allowable=True),
    Rule("TPU123", "error", "an image without a registry", stops_stack=True),
    Rule("TPU124", "warning", "an image whose tag moves", allowable=True),
    Rule("TPU125", "warning", "a job of a cluster that is not named", allowable=True),
    Rule("TPU126", "warning", "two specs that share their folders", allowable=True),
    Rule("TPU127", "warning", "restarts that a preemption ends", allowable=True),
    Rule("TPU128", "warning", "a run in a folder of its own choice", allowable=True),
    Rule("TPU129", "warning", "a rung that takes longer than its slice lives", allowable=True),
    Rule("TPU130", "error", "a run that costs more than the gate allows"),
    Rule("TPU131", "error", "two specs that create one bucket"),
    Rule("TPU132", "note", "deleted checkpoints that are billed"),
    Rule("TPU134", "warning", "a placement by topology without a queue", allowable=True),
    Rule("TPU135", "error", "a stack program of an earlier version", stops_stack=True),
    Rule("TPU136", "error", "names that two stacks have"),
    Rule("TPU137", "warning", "a grant that two stacks declare", allowable=True),
)

RULES: Final = {rule.id: rule for rule in _ROWS}
"""Every rule by its id, in the order of the ids."""
