"""The worker: the only part that knows where records are; it speaks no HTTP."""
