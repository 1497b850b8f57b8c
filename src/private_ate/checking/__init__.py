"""The curator's look at the data before an estimate. Not private: nothing of it may be shared."""
