"""The sample-level method `blocks`: regression inside blocks of rows, one private centre."""
