"""Pages for people: server-rendered, escaped by construction, without a script."""
