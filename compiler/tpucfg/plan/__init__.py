"""Plan a spec: its rungs and jobs with all their figures, and the findings about them."""

from tpucfg.plan.job import XLA_FLAGS_VARIABLE, Job, environment_labels, job_labels, make_job
from tpucfg.plan.naming import account_id, bucket_of, job_name, zone_of
from tpucfg.plan.planner import Plan, ladder, plan, run_progress_in
from tpucfg.plan.rung import Rung, flag_name, rung_figures, shows_parallelism
from tpucfg.plan.selection import (
    LadderGroup,
    RunPart,
    Selection,
    SelectionError,
    group_ladders,
    select_sizes,
)

__all__ = [
    "XLA_FLAGS_VARIABLE",
    "Job",
    "LadderGroup",
    "Plan",
    "RunPart",
    "Rung",
    "Selection",
    "SelectionError",
    "account_id",
    "bucket_of",
    "environment_labels",
    "flag_name",
    "group_ladders",
    "job_labels",
    "job_name",
    "ladder",
    "make_job",
    "plan",
    "run_progress_in",
    "rung_figures",
    "select_sizes",
    "shows_parallelism",
    "zone_of",
]
