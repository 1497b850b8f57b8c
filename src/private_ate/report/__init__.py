"""Release → text, JSON and pages."""
