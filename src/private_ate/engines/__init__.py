"""Who sums over rows: one machine (`local`, columns in memory or in `disk_columns`) or `spark`.

An engine answers the protocol of `private_ate.study` and never imports a mechanism or ε; what both
engines do with shuffled rows is `grouping`. `matching` (compiled) and `matching_pools` belong to
the local engine, `spark_table` to the other. Change both engines together, and run tests/engines.
"""
