"""Planning: a spec to rungs and jobs, with all their figures and everything that is to be said about them."""

from tpucfg.plan.model import Job, Plan, Rung, Selection
from tpucfg.plan.plan import ladder, plan
from tpucfg.plan.selection import SelectionError, select

__all__ = ["Job", "Plan", "Rung", "Selection", "SelectionError", "ladder", "plan", "select"]
