"""HTTP: the interface for programs, identities and limits; opens no records."""
