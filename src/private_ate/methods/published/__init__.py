"""The paper's method, PrivATE: its Algorithms 1 to 4, one module each, and its matching limits.

Algorithm 1 is `regression`, 2 `matching`, 3 `effect`, 4 `method`; docs/the-paper.md leads from the
paper's numbers to functions, and names move together with it. The method stays as the paper has
it: words may be changed alone; weights, limits and what is drawn change together with
docs/proofs/published.md and the golden releases.
"""
