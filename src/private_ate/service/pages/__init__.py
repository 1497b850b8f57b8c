"""Pages for browsers: server-rendered, escaped by construction (`report.markup`), without a script.

Alone: the words and the order of a page. A form is a table of `layout.Field`, by which it is shown
and read back. Together: a page that changes something, its operation and its endpoint in
`web.api`; the navigation of a role in `layout` and the roles that a page requires.
"""
