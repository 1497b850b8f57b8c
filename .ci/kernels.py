"""Compile what estimates run, once, before the processes of the tests would do so side by side."""

from private_ate import BlocksOptions, estimate_ate
from private_ate.datasets.clinic import draw_clinic

REQUESTS = (
    {"level": "label"},
    {"level": "label", "by": ["age<60"]},
    {"level": "label", "method": "published"},
    {"level": "sample", "options": BlocksOptions(adjust=True, partitions=1)},
)

if __name__ == "__main__":
    study = draw_clinic(patients=2000, seed=1)
    for request in REQUESTS:
        estimate_ate(study.frame, domain=study.domain, epsilon=4, seed=1, **request)
