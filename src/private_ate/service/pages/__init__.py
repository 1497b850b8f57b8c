"""Pages for browsers: server-rendered, escaped by construction (`report.markup`), without a script.

Alone: the words and the order of a page. Together: a form's fields and the function that reads them
back (both in one module); a page that changes something, its operation and its endpoint in
`web.api`; the navigation of a role in `layout` and the roles that a page requires.
"""
