"""The paper's figures and tables, and our own comparisons, as experiments that can be rerun.

Nothing here is private: releases are seeded, and errors are measured against the records.
"""
