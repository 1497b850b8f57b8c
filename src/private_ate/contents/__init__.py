"""What a release is made of: what it is about, its table of effects, its steps, its JSON."""
