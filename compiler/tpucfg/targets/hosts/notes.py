"""The notes about the end of a slice that `tpucfg submit` prints."""

from collections.abc import Iterator

from tpucfg.plan.job import Job
from tpucfg.targets.hosts.startup import end_folder


def end_notes(job: Job) -> Iterator[str]:
    """Yield notes about the end of the slice, and about what outlives it."""
    if duration := job.max_run_duration:
        yield (
            f"the slice deletes itself when the program has ended, and at the latest {duration.text} after its hosts "
            "have started; waiting for capacity does not count"
        )
        yield f"the end of the program's output, or of a start that fails, is kept in {end_folder(job)}/logs/"
    else:
        yield "the slice is charged until it is deleted, even after the program has ended"
