"""Plan a spec: its rungs and jobs with all their figures, and the findings about them."""

from tpucfg.plan.job import Job
from tpucfg.plan.plan import Plan, ladder, plan
from tpucfg.plan.rung import Rung
from tpucfg.plan.selection import Selection, SelectionError, select_sizes

__all__ = ["Job", "Plan", "Rung", "Selection", "SelectionError", "ladder", "plan", "select_sizes"]
