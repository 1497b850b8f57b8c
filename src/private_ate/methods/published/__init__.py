"""The paper's method, PrivATE: its Algorithms 1 to 4 and its matching limits.

Algorithms 1 and 2 are `matching`, 3 and the limits `effect`, 4 `method`; docs/the-paper.md leads
from the paper's numbers to functions, and names move together with it. The method stays as the
paper has it: words may be changed alone; weights, limits and what is drawn change together with
docs/proofs/published.md and the golden releases.
"""
