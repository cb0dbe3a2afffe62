"""A server on this machine that answers like the Hugging Face hub."""

import contextlib
import hashlib
import http.server
import json
import re
import threading
import urllib.parse

COMMIT = hashlib.sha1(b"the only commit").hexdigest()
REVISIONS = ("main", "v1", COMMIT)


class LoopbackHub:
    """Repositories of files, and what was asked for them.

    Args:
        repositories: by name, the folder of its files.

    Attributes:
        url: what HF_ENDPOINT is to be.
        gated: names of repositories that refuse downloads.
        downloads: (file, Range header or None) for each download that was begun.
    """

    def __init__(self, url, repositories):
        self.url, self.repositories = url, repositories
        self.gated = set()
        self.downloads = []


@contextlib.contextmanager
def serving(repositories):
    """Serves repositories while the block runs; yields a LoopbackHub."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        server.daemon_threads = True
        server.hub = LoopbackHub(f"http://127.0.0.1:{server.server_port}", repositories)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.hub
        finally:
            server.shutdown()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self._answer()

    def do_GET(self):
        self._answer()

    def _answer(self):
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        about = re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/(revision|tree)/(.+))?", path)
        file = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        if not about and not file:  # such as telemetry
            return self._refuse(404, "EntryNotFound")
        repository, *_ = (about or file).groups()
        revision = (about[3] if about else file[2]) or "main"
        if repository not in self.server.hub.repositories:
            self._refuse(404, "RepoNotFound")
        elif revision not in REVISIONS:
            self._refuse(404, "RevisionNotFound")
        elif file:
            self._send_file(repository, file[3])
        else:
            self._send_json(self._describe(repository, kind=about[2]))

    def _describe(self, repository, kind):
        folder = self.server.hub.repositories[repository]
        files = sorted(file for file in folder.iterdir() if file.is_file())
        if kind == "tree":
            return [
                {
                    "type": "file",
                    "path": file.name,
                    "size": file.stat().st_size,
                    "oid": hashlib.sha1(file.read_bytes()).hexdigest(),
                }
                for file in files
            ]
        siblings = [{"rfilename": file.name} for file in files]
        return {"id": repository, "sha": COMMIT, "private": False, "siblings": siblings}

    def _send_json(self, content):
        body = json.dumps(content).encode()
        self._send_head(200, {"Content-Type": "application/json"}, len(body))
        self.wfile.write(body)

    def _send_file(self, repository, name):
        hub = self.server.hub
        file = hub.repositories[repository] / name
        if repository in hub.gated:
            return self._refuse(403, "GatedRepo")
        if not file.is_file():
            return self._refuse(404, "EntryNotFound")
        content = file.read_bytes()
        etag = f'"{hashlib.sha1(content).hexdigest()}"'
        headers = {"ETag": etag, "X-Repo-Commit": COMMIT, "Accept-Ranges": "bytes"}
        asked, status, size = self.headers.get("Range"), 200, len(content)
        if asked:
            first = int(re.fullmatch(r"bytes=(\d+)-", asked)[1])
            headers["Content-Range"] = f"bytes {first}-{size - 1}/{size}"
            content, status = content[first:], 206
        self._send_head(status, headers, len(content))
        if self.command == "GET":
            hub.downloads.append((name, asked))
            self.wfile.write(content)

    def _refuse(self, status, code):
        headers = {"X-Error-Code": code, "X-Repo-Commit": COMMIT}
        self._send_head(status, headers, 0)

    def _send_head(self, status, headers, length):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": length}.items():
            self.send_header(name, str(value))
        self.end_headers()
