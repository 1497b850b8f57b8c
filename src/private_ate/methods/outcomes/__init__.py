"""Effects on several outcomes at label level: a run for each, drawn together at the choke point.

One module. Who may be compared may be changed alone; what runs draw together changes with
`privacy.composed_noise` and docs/proofs/outcomes.md. `blocks` releases outcomes by itself.
"""
