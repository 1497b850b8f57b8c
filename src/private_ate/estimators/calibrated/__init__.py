"""Our label-level method: calibration weights under a cap, one staircase draw."""
