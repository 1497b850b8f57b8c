# %% [markdown]
# # From a file to a report
#
# A curator has a file, an analyst a question. The file here is a simulated study of a drug against high blood pressure, in which older and sicker patients were treated more often.
# %%
from pathlib import Path

from private_ate.datasets.clinic import draw_clinic

study = draw_clinic()
study.frame.write_csv("clinic.csv")
print(f"{study.frame.height:,} rows: {', '.join(study.frame.columns)}")
# %% [markdown]
# **Declare.** Bounds and labels come from a code book, never from the file.
# %%
from private_ate import Categories, Domain, Interval, Outcome, Treatment

domain = Domain(
    treatment=Treatment("drug", treated="yes", control="no"),
    outcome=Outcome("pressure_drop", Interval(-40, 60), missing="public", unit="mmHg"),
    covariates={
        "age": Interval(18, 95),
        "pressure_before": Interval(90, 230),
        "weight": Interval(35, 200),
        "smoker": Categories("never", "former", "current", "unknown", other="unknown"),
        "diabetes": Interval(0, 1),
    },
)
# %% [markdown]
# **Check**, with the curator's eyes: nothing is spent, and nothing of it may be shared.
# %%
from private_ate import check_data

found = check_data("clinic.csv", domain=domain, level="label")
"the file is what was declared" if not found.bends else "a problem would bias the estimate"
# %% [markdown]
# **Plan.** What to expect of each ε before any of it is spent.
# %%
from private_ate import plan_ate

plan_ate("clinic.csv", domain=domain, level="label", epsilons=["0.1", "0.5", "1"])
# %% [markdown]
# **Release.** At label level outcomes are private, covariates and treatment are public.
# %%
from private_ate import estimate_ate

release = estimate_ate("clinic.csv", domain=domain, level="label", epsilon="1.0")
release
# %% [markdown]
# **Write.** A table for a paper, and a page that prints on two sheets: Table 1 by arm, before and after weighting, is on it.
# %%
from private_ate import PublicFacts, describe_arms

table = describe_arms(release, "clinic.csv", domain=domain)
page = release.to_html(PublicFacts(table=table, domain=domain.to_toml()))
Path("report.html").write_text(page, encoding="utf-8")
print(release.to_markdown())
