# %% [markdown]
# # Doses and subgroups
#
# Simulated births: does smoking during pregnancy go with a lower birth weight, and with more of it by dose?
# %%
from private_ate import estimate_ate
from private_ate.datasets import birth_weight

babies = birth_weight(4642)
release = estimate_ate(babies.frame, domain=babies.domain, level="label", epsilon="2.0")
release
# %% [markdown]
# Every arm is compared with every other from the same noise, and sums of arms cost nothing more. Here: the heaviest smokers against the mean of the two lighter groups.
# %%
reference, light, middle, heavy = (arm.label for arm in release.arms)
release.combination({heavy: 1, light: -0.5, middle: -0.5})
# %% [markdown]
# **For whom?** Subgroups of public columns share no rows, so each is released with all of ε; the effect of everybody is rolled up from them.
# %%
from private_ate.datasets.clinic import draw_clinic

clinic = draw_clinic()
by_age = estimate_ate(
    clinic.frame, domain=clinic.domain, level="label", epsilon="1.0", by=["age<60"]
)
print(by_age.to_markdown())
