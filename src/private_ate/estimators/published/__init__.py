"""The paper's method, PrivATE: its Algorithms 1 to 4, one module each, and its matching limits."""
