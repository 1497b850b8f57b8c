"""Skips that hide an absence: what a suite has installed must be tested, not skipped.

``PRIVATE_ATE_REQUIRE`` names the parts that the caller has installed, with commas between. A test
that is skipped for want of one of them fails, and so does a skip with a reason that nobody has
written down here: a suite that quietly stops running is not green. Without the variable, skips are
skips.
"""

import os
import re

import pytest

# What the reason of a skip says if this part is absent.
PARTS = {
    "accounting": r"dp-accounting",
    "browser": r"NO BROWSER",
    "data": r"DATA SET NOT TESTED|package causaldata",
    "cases": r"schemathesis",
    "dowhy": r"DOWHY WAS NOT|package dowhy",
    "formats": r"FORMATS WERE NOT READ|package pyreadstat",
    "plots": r"PLOTS WERE NOT DRAWN",
    "postgres": r"POSTGRESQL",
    "r": r"R WAS NOT RUN",
    "serve": r"THE SERVICE WAS NOT TESTED",
    "site": r"THE SITE WAS NOT BUILT",
    "sklearn": r"SCIKIT-LEARN WAS NOT|package sklearn",
    "spark": r"pyspark",
}
# Skips that no installation would end.
FOR_GOOD = r"needs fork|is non deterministic|SCIPY_ARRAY_API|needs Linux"


def required_parts() -> frozenset[str] | None:
    """Return the parts that must not be missing, or None where skips are skips."""
    named = os.environ.get("PRIVATE_ATE_REQUIRE")
    if named is None:
        return None
    parts = frozenset(filter(None, named.split(",")))
    if unknown := parts - PARTS.keys():
        msg = f"PRIVATE_ATE_REQUIRE knows {', '.join(PARTS)}; not {', '.join(sorted(unknown))}"
        raise pytest.UsageError(msg)
    return parts


def objection(reason: str, required: frozenset[str] | None) -> str | None:
    """Return why a skip is a failure here, or None if it may be."""
    if required is None or re.search(FOR_GOOD, reason):
        return None
    wanting = {part for part, words in PARTS.items() if re.search(words, reason)}
    if not wanting:
        return f"SKIPPED FOR A REASON THAT tests/required_parts.py DOES NOT KNOW: {reason}"
    if wanting & required:
        return f"SKIPPED, BUT THIS SUITE REQUIRES {', '.join(sorted(wanting & required))}: {reason}"
    return None


def _judge(report):
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        found = objection(reason, required_parts())
        if found:
            report.outcome, report.longrepr = "failed", found
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    return _judge((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report():
    return _judge((yield))


def pytest_configure():
    required_parts()  # a word that nobody knows is told at once
