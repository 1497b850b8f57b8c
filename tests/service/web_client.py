"""A client that calls an application in this process: no socket, no package of its own."""

import asyncio
import json as plain_json
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from urllib.parse import urlencode


@dataclass
class Answer:
    status_code: int
    headers: dict
    content: bytes
    set_cookies: list = field(default_factory=list)

    @property
    def text(self):
        return self.content.decode()

    def json(self):
        return plain_json.loads(self.content)

    def iter_lines(self):
        return self.text.splitlines()


@dataclass
class Client:
    """Calls ``app`` from an address; keeps cookies like a browser does."""

    app: object
    client: tuple = ("127.0.0.1", 5000)
    cookies: dict = field(default_factory=dict)

    def request(self, method, path, headers=None, json=None, data=None, content=None, params=None):
        sent = {name.lower(): value for name, value in (headers or {}).items()}
        chunks = [b""]
        if json is not None:
            chunks = [plain_json.dumps(json).encode()]
            sent.setdefault("content-type", "application/json")
        elif data is not None:
            chunks = [urlencode(data).encode()]
            sent.setdefault("content-type", "application/x-www-form-urlencoded")
        elif content is not None:
            chunks = list(content)
        if len(chunks) == 1:
            sent["content-length"] = str(len(chunks[0]))
        if self.cookies:
            sent["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        path, _, query = path.partition("?")
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
            "scheme": "http", "path": path, "raw_path": path.encode(), "root_path": "",
            "query_string": (urlencode(params) if params else query).encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in sent.items()],
            "client": self.client, "server": ("testserver", 80),
        }  # fmt: skip
        answer = asyncio.run(self._call(scope, chunks))
        for text in answer.set_cookies:
            for name, morsel in SimpleCookie(text).items():
                self.cookies.pop(name, None)
                if morsel.value and morsel["max-age"] != "0":
                    self.cookies[name] = morsel.value
        return answer

    async def _call(self, scope, chunks):
        left = list(chunks)
        messages = []

        async def receive():
            if not left:
                await asyncio.Event().wait()  # the caller stays on the line
            body = left.pop(0)
            return {"type": "http.request", "body": body, "more_body": bool(left)}

        async def send(message):
            messages.append(message)

        await self.app(scope, receive, send)
        start, *bodies = messages
        pairs = [(name.decode().lower(), value.decode()) for name, value in start["headers"]]
        return Answer(
            start["status"], dict(pairs), b"".join(item.get("body", b"") for item in bodies),
            [value for name, value in pairs if name == "set-cookie"],
        )  # fmt: skip

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, **more):
        return self.request("POST", path, **more)

    def put(self, path, **more):
        return self.request("PUT", path, **more)
