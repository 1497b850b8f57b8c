"""The service over HTTP: endpoints for programs under /v1, and pages for browsers, without records.

Pages are rendered here, escaped by construction (`report.markup`), without a script. Alone: the
words and the order of a page. A form is a table of `layout.Field`, by which it is shown and read
back. Together: a page or an endpoint and its operation; the navigation of a role in `layout` and
the roles that a page requires.
"""
