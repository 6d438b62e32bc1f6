"""Compile kernels in a browser: the second opinion of another WGSL compiler, Chromium's.

    python tools/webgpu_browser.py FOLDER [--chromium chromium]

FOLDER has the texts that `pytest tests/device_suite.py --device webgpu --keep-wgsl FOLDER` has
left. A page makes a shader module of each and posts what was wrong.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

FLAGS = ("--headless", "--no-sandbox", "--no-first-run", "--enable-unsafe-webgpu")
FLAGS += ("--use-webgpu-adapter=swiftshader", "--disable-gpu-sandbox")
PAGE = """<!doctype html><script>
async function main() {
  const post = (path, found) => fetch(path, {method: "POST", body: JSON.stringify(found)});
  try {
    const adapter = await navigator.gpu.requestAdapter();
    const device = await adapter.requestDevice();
    const texts = await (await fetch("/texts")).json();
    const wrong = {};
    for (const [name, code] of Object.entries(texts)) {
      const module = device.createShaderModule({code});
      const info = await module.getCompilationInfo();
      const bad = info.messages.filter(m => m.type == "error");
      const errors = bad.map(m => m.lineNum + ": " + m.message);
      if (errors.length) wrong[name] = errors;
    }
    await post("/done", {count: Object.keys(texts).length, wrong});
  } catch (error) { await post("/done", {count: 0, wrong: {page: [String(error)]}}); }
}
main();
</script>"""


def compiled(folder: Path, chromium: str, seconds: float) -> dict[str, Any]:
    """What the browser says of the texts: how many there were, and what was wrong with which."""
    texts = {path.stem: path.read_text() for path in sorted(folder.glob("*.wgsl"))}
    found: dict[str, Any] = {}
    done = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(texts) if self.path == "/texts" else PAGE
            kind = "application/json" if self.path == "/texts" else "text/html"
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(body.encode())

        def do_POST(self) -> None:
            found.update(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()
            done.set()

        def log_message(self, *args: Any) -> None:
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as profile:
        address = f"http://localhost:{server.server_port}/"
        command = [chromium, *FLAGS, f"--user-data-dir={profile}", address]
        browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            done.wait(seconds)
        finally:
            browser.terminate()
            browser.wait(30)
            server.shutdown()
    return found


def main() -> int:
    """Print what was wrong; the exit status tells whether something was."""
    parser = argparse.ArgumentParser(description="Compile WGSL texts in a headless Chromium.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--chromium", default="chromium")
    parser.add_argument("--seconds", type=float, default=600)
    asked = parser.parse_args()
    if shutil.which(asked.chromium) is None:
        print(f"test-webgpu-browser: skipped, there is no {asked.chromium} here")
        return 0
    found = compiled(asked.folder, asked.chromium, asked.seconds)
    if not found:
        print("test-webgpu-browser: the browser did not answer")
        return 1
    for name, errors in found["wrong"].items():
        print(name, *errors, sep="\n  ")
    print(f"{found['count'] - len(found['wrong'])} of {found['count']} texts compile in Chromium")
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
