"""Several sites: releases that were made apart, pooled into one effect without spending more."""
