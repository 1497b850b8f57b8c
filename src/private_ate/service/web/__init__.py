"""HTTP: the endpoints under /v1, who asks, what goes in and out, and errors as RFC 9457 has them.

No module here knows a worker or opens records; an import contract says so. Alone: a limit on rates
or sizes. Together: an endpoint in `api`, its bodies in `models`, its operation, and its row in the
matrix of roles (tests/service/test_web_api.py).
"""
