"""Drive a real JupyterLab in a real Chromium: one server, pages, cells, themes, screenshots.

JupyterLab's own application object is asked what is ready; the DOM says so too early.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import Browser, Locator, Page

ROOT = Path(__file__).resolve().parent.parent.parent
SHOTS = ROOT / "build" / "shots"
SECONDS = 60.0
CHROMIUM_FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
]  # fmt: skip
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")

READY = """async () => {
  const app = window.jupyterapp; if (!app) return 'no application'; await app.restored;
  const w = app.shell.currentWidget; if (!w || !w.sessionContext) return 'no notebook';
  await w.context.ready; await w.sessionContext.ready;
  const k = w.sessionContext.session?.kernel; if (!k) return 'no kernel'; await k.info; return k.status; }"""
RUN_CELL = """i => { const n = jupyterapp.shell.currentWidget.content; n.activeCellIndex = i; n.deselectAll();
  return jupyterapp.commands.execute('notebook:run-cell').then(() => true); }"""
PYTHON = """async code => {
  const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  for (;;) {
    const future = kernel.requestExecute({ code, silent: false, store_history: false });
    let text = '';
    future.onIOPub = m => {
      if (m.header.msg_type === 'stream' && m.content.name === 'stdout') text += m.content.text;
      if (m.header.msg_type === 'error') text += m.content.ename + ': ' + m.content.evalue; };
    const reply = await future.done;
    if (reply.content.status !== 'aborted') return text;  // right after an error the kernel aborts what is queued
  } }"""
#: run a cell's text `times` over in the kernel as this cell, without drawing what it shows
RUN_UNSEEN = """async ([i, times]) => {
  const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  const model = jupyterapp.shell.currentWidget.content.widgets[i].model;
  for (let n = 0; n < times; n++)
    await kernel.requestExecute({ code: model.sharedModel.getSource() }, true, { cellId: model.id }).done; }"""
EXECUTION_COUNT = "i => jupyterapp.shell.currentWidget.content.widgets[i].model.executionCount"


def find_chromium() -> str | None:
    """The browser that `make` found, else one on the PATH, else Playwright's own; None where there is none."""
    for name in (os.environ.get("DYNASCOPE_CHROMIUM", ""), *CHROMIUM_NAMES):
        found = shutil.which(name) if name else None
        if found:
            return found
    return None


def shot_path(name: str) -> Path:
    """Where a screenshot of this name belongs."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    return SHOTS / f"{name}.png"


class Server:
    """One JupyterLab, with everything it reads and writes below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "notebooks"
        self.root.mkdir(parents=True)
        settings = folder / "config" / "labconfig"
        settings.mkdir(parents=True)
        # asks on a first start whether news are wanted, and lies over what is to be seen
        news = {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}
        (settings / "page_config.json").write_text(json.dumps(news))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self.log = folder / "server.log"
        environ = {
            **os.environ,
            "JUPYTER_CONFIG_DIR": str(folder / "config"),
            "JUPYTER_DATA_DIR": str(folder / "data"),
            "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
            "IPYTHONDIR": str(folder / "ipython"),
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        }
        command = [
            sys.executable, "-m", "jupyter", "lab", "--no-browser", "--ip=127.0.0.1", f"--port={port}",
            "--ServerApp.port_retries=0", "--IdentityProvider.token=", "--ServerApp.password=", "--ServerApp.allow_root=True",
            f"--ServerApp.root_dir={self.root}", "--LabApp.expose_app_in_browser=True", "--LabApp.news_url=",
            "--LabApp.collaborative=False", "--JupyterNotebookApp.expose_app_in_browser=True",
        ]  # fmt: skip
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, env=environ, stdout=log, stderr=log, start_new_session=True)
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                with urllib.request.urlopen(self.url + "/api/status", timeout=5) as answer:
                    answer.read()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    raise RuntimeError(f"JupyterLab did not start:\n{self.log.read_text(errors='replace')[-3000:]}") from None
                time.sleep(0.1)

    def write(self, name: str, cells: Iterable[Any], **metadata: Any) -> Path:
        """Write a notebook of these cells (sources, or cells) for the server to open."""
        notebook = nbformat.v4.new_notebook()
        # without a kernelspec JupyterLab opens a dialog, and the session is never ready
        notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
        notebook.metadata.update(metadata)
        notebook.cells = [nbformat.v4.new_code_cell(c) if isinstance(c, str) else c for c in cells]
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, path)
        return path

    def stop(self) -> None:
        """End the server and its kernels."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(5)


class LabPage:
    """One notebook, open in a browser page of its own.  `page` is Playwright's."""

    def __init__(
        self, server: Server, browser: Browser, name: str, width: int = 1200, height: int = 900, *, app: str = "lab"
    ) -> None:
        """`app`: "lab", or "notebook" for Notebook 7, which the same server has."""
        self.server = server
        self.name = name
        self.page: Page = browser.new_page(viewport={"width": width, "height": height})
        #: what the page's console complained about: tests may assert that there is nothing of ours in it
        self.console: list[str] = []
        self.page.on("console", lambda m: self.console.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda e: self.console.append(str(e)))
        self.page.goto(f"{server.url}/lab/tree/{name}?reset" if app == "lab" else f"{server.url}/notebooks/{name}")
        self._wait()

    def _wait(self) -> None:
        self.page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=SECONDS * 1000)
        self.wait_idle()

    # -- the kernel ---------------------------------------------------------------------------------

    def wait_idle(self) -> None:
        """Until the kernel answers and is idle."""
        deadline = time.monotonic() + SECONDS
        while (status := self.page.evaluate(READY)) != "idle":
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name}: the kernel never became idle: {status}")
            time.sleep(0.05)

    def run(self, index: int) -> Locator:
        """Run a cell to its end; its outputs."""
        self.page.evaluate(RUN_CELL, index)
        return self.outputs(index)

    def run_unseen(self, index: int, times: int) -> None:
        """Run a cell many times, without drawing its outputs."""
        self.page.evaluate(RUN_UNSEEN, [index, times])

    def start(self, index: int) -> None:
        """Run a cell without waiting for it."""
        self.page.evaluate(f"i => {{ ({RUN_CELL})(i); }}", index)

    def run_all(self) -> None:
        """Run every cell, in order, to its end."""
        for index in range(self.cells().count()):
            self.run(index)

    def python(self, code: str) -> str:
        """Run code in the kernel, in no cell; what it printed (or the error)."""
        return str(self.page.evaluate(PYTHON, code))

    def restart(self) -> None:
        """Restart the kernel."""
        self.page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
        self.wait_idle()

    def interrupt(self) -> None:
        """Interrupt the kernel."""
        self.page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.interrupt()")

    def reload(self) -> None:
        """Load the page again; the kernel stays."""
        self.page.reload()
        self._wait()

    def execution_count(self, index: int) -> int | None:
        """The number in a cell's prompt."""
        count: int | None = self.page.evaluate(EXECUTION_COUNT, index)
        return count

    # -- what is seen -------------------------------------------------------------------------------

    def cells(self) -> Locator:
        """Every cell of the notebook."""
        return self.page.locator(".jp-Notebook .jp-Cell")

    def outputs(self, index: int) -> Locator:
        """The output area of one cell."""
        return self.cells().nth(index).locator(".jp-OutputArea").first

    def text(self, index: int) -> str:
        """What a cell's outputs show as text, without their prompts."""
        found = self.cells().nth(index).locator(".jp-OutputArea-output")
        return "\n".join(found.nth(i).inner_text().strip() for i in range(found.count()))

    def theme(self, name: str) -> None:
        """Switch to "light" or "dark"."""
        full = f"JupyterLab {name.capitalize()}"
        self.page.evaluate("theme => jupyterapp.commands.execute('apputils:change-theme', { theme })", full)
        self.page.wait_for_selector(f"body[data-jp-theme-name='{full}']", state="attached")
        time.sleep(0.3)  # the style sheet is swapped after the attribute

    def resize(self, width: int, height: int = 900) -> None:
        """Change the window's size, and let the layout settle."""
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def focus(self) -> None:
        """Leave the notebook as alone as it goes, for pictures: no side bars."""
        self.page.evaluate("() => { const s = jupyterapp.shell; s.collapseLeft(); s.collapseRight(); }")

    def shot(self, name: str, selector: str | None = None) -> Path:
        """A screenshot, of the page or of one element, in build/shots."""
        path = shot_path(name)
        if selector is None:
            self.page.screenshot(path=path)
        else:
            self.page.locator(selector).first.screenshot(path=path)
        return path

    # -- the file -----------------------------------------------------------------------------------

    def save(self) -> Path:
        """Save the notebook; where it lies."""
        self.page.evaluate("() => jupyterapp.commands.execute('docmanager:save')")
        return self.server.root / self.name

    def close(self) -> None:
        """Close the page and shut its kernel down."""
        with contextlib.suppress(Exception):
            self.page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.shutdown()")
        self.page.close()


OpenLab = Callable[..., LabPage]
