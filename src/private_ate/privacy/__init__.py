"""What is promised: budgets, random bytes, noise and exact sums."""
