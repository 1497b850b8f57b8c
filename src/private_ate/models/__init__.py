"""Models by folds: logistic regression, private or not, and private standardisation."""
