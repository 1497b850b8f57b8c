"""The curator's references: estimates without noise, and Table 1; they release nothing.

They read tables themselves, so that they may import `data` and `engines`; nothing that releases
imports them. `noiseless` repeats a release with every noise at zero, and knows each mechanism of
`privacy.noise` by name: a new mechanism is added there too.
"""
