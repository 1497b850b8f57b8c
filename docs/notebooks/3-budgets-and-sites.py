# %% [markdown]
# # Budgets and several sites
#
# Two hospitals with simulated studies. Each keeps its records and its own budget.
# %%
from private_ate import Ledger, estimate_ate
from private_ate.datasets.clinic import draw_clinic

study = draw_clinic()
north, south = study.frame[:2500], study.frame[2500:]
Ledger.create("budget.db", "north", epsilon="1.5").close()
first = estimate_ate(
    north,
    domain=study.domain,
    level="sample",
    epsilon="1.0",
    ledger="budget.db",
    dataset="north",
    request_id="trial-1",
)
second = estimate_ate(south, domain=study.domain, level="sample", epsilon="1.0")
# %% [markdown]
# The ledger was charged before any noise was drawn. A request that would overspend is refused, and costs nothing.
# %%
from private_ate import BudgetError

try:
    estimate_ate(north, domain=study.domain, level="sample", epsilon="1.0", ledger="budget.db")
except BudgetError as refusal:
    print(refusal)
# %% [markdown]
# Somebody edits the number in a saved release. The ledger knows what was released.
# %%
from private_ate import LedgerError

edited = first.to_json().replace(f'"ate": {first.ate}', '"ate": 99.9', 1)
with_ledger = Ledger.open("budget.db")
try:
    with_ledger.verify(release=edited)
except LedgerError as difference:
    print(difference)
with_ledger.close()
# %% [markdown]
# Both releases together: post-processing, so it costs nothing.
# %%
from private_ate import combine

combine({"north": first, "south": second})
