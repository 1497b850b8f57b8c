"""The curator's doors to released estimators: they read tables themselves, release nothing."""
