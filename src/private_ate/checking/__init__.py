"""The curator's check of the data before an estimate. Not private: nothing of it may be shared.

`check` runs a pass and `column_counts` counts; `columns`, `outcome`, `arms`
and `repeats` turn counts into `findings`; `proposals` writes declarations.
A sentence or a threshold may be changed alone. A new count changes `column_counts` and the module
that judges it; topics and keys of findings are public: `docs/how-to/check-your-data.md` follows.
"""
