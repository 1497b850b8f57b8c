"""Before any ε is spent: expected error and interval width for a list of budgets.

At label level a plan reads the public covariates and treatment, or makes units up; at sample
level it needs n, the number of covariates and guesses only. No private column is touched and
nothing is spent.
"""

from private_ate.planning.api import plan_ate
from private_ate.planning.assumptions import StudySizes
from private_ate.planning.plan import Plan, PlanRow

__all__ = ["Plan", "PlanRow", "StudySizes", "plan_ate"]
