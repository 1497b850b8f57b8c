"""Every Python and console block of the documentation runs, page by page, in a fresh folder."""

import importlib.util
import inspect
import re
import shlex
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

from required_parts import objection

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
NEEDS = {
    "tutorial.md": "causaldata",
    "how-to/scikit-learn.md": "sklearn",
    "how-to/dowhy.md": "dowhy",
    "how-to/file-formats.md": "pyreadstat",
    "how-to/spark.md": "pyspark",
}
# What a page may show without its being run, and the pages whose commands cannot be run here.
SHOWN = {"text", "r", "stata", "bibtex", "json", "toml", ""}
COMMANDS_NOT_RUN = {
    "experiments.md": "experiments take minutes to hours; their own tests run them in small",
    "how-to/ledger.md": "one block speaks of a PostgreSQL server",
    "how-to/serve-a-hospital.md": "they start servers; tests/service runs them",
    "reference/command-line.md": "usages with places to fill in; examples have a test of their own",
    "how-to/ask-a-service.md": "they speak to a server; tests/service runs them",
}
_FENCE = re.compile(
    r"^(?:<!-- exits: (?P<code>\d) -->\n)?```(?P<head>[^\n`]*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def blocks(page):
    """Yield language, title, expected exit code and text of each fenced block."""
    for found in _FENCE.finditer((DOCS / page).read_text("utf-8")):
        language, _, rest = found["head"].strip().partition(" ")
        title = re.search(r'title="([^"]+)"', rest)
        yield language, title and title[1], int(found["code"] or 0), found["body"]


def run_console(text, expected, monkeypatch):
    from private_ate.cli.app import main

    commands = re.findall(r"^\$ (.*(?:\n> .*)*)", text, re.MULTILINE)
    for command in commands:
        words = shlex.split(command.replace("\\\n> ", " "))
        assert words[0] == "private-ate", f"only private-ate commands are shown: {command}"
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as stop:
            main()
        assert (stop.value.code or 0) == expected, command


@pytest.mark.documentation
@pytest.mark.parametrize("page", PAGES)
def test_the_code_on_the_page_runs(page, tmp_path, monkeypatch, capsys):
    found = list(blocks(page))
    needed = NEEDS.get(page)
    if needed and importlib.util.find_spec(needed) is None:
        pytest.skip(f"{page.upper()} WAS NOT RUN: it needs the package {needed}")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for language, title, code, body in found:
        if title:
            Path(title).write_text(body, encoding="utf-8")
        if language == "python":
            exec(compile(body, f"{page}", "exec"), names)  # noqa: S102  # our own pages
        elif language == "console" and "$ private-ate" in body:
            run_console(body, code, monkeypatch)
        else:
            assert language in SHOWN, language
            assert page in COMMANDS_NOT_RUN or "\nprivate-ate" not in f"\n{body}", body
            assert "\n$ " not in f"\n{body}", f"a block with a prompt is a console: {body}"
    capsys.readouterr()


def notebooks():
    spec = importlib.util.spec_from_file_location("make_notebooks", DOCS / "make_notebooks.py")
    script = sys.modules["make_notebooks"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


@pytest.mark.documentation
@pytest.mark.parametrize("name", sorted(path.stem for path in DOCS.glob("notebooks/*.py")))
def test_the_code_in_the_notebook_runs(name):
    script = notebooks()

    done = script.run_cells(script.read_cells(name))

    assert any(cell.printed or cell.value for cell in done)


def test_every_fence_is_closed_and_seen():
    for page in PAGES:
        fences = re.findall(r"^```", (DOCS / page).read_text("utf-8"), re.MULTILINE)
        assert len(fences) == 2 * len(list(blocks(page))), page


def test_no_block_hides_from_being_run():
    for page in PAGES:
        text = (DOCS / page).read_text("utf-8")
        hidden = re.findall(r"^(?:[ \t>]+(?:```|~~~)|~~~).*$", text, re.MULTILINE)
        assert hidden == [], f"{page}: blocks begin at the start of a line, with ```"


def test_a_page_that_needs_an_extra_is_required_where_all_extras_are():
    suites = (ROOT / "Makefile").read_text("utf-8")
    required = re.search(r"PRIVATE_ATE_REQUIRE=(\S+) SPARK_LOCAL_IP\S+ \\\n.*code in doc", suites)[
        1
    ]

    for page, package in NEEDS.items():
        reason = f"{page.upper()} WAS NOT RUN: it needs the package {package}"
        assert objection(reason, frozenset(required.split(","))), page
    assert set(COMMANDS_NOT_RUN) <= set(PAGES)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    program = shutil.which("mkdocs") or shutil.which(
        "mkdocs", path=str(Path(sys.executable).parent)
    )
    if program is None:
        pytest.skip("THE SITE WAS NOT BUILT: run `make docs` (installs mkdocs-material)")
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [program, "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.fixture(scope="module")
def address(site):
    """Serve the built site on this machine only."""
    from functools import partial
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
    from threading import Thread

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(("width", "every"), [(360, 1), (1280, 3)])  # trouble is narrow
def test_the_site_loads_quietly_alone_and_readably(
    browser, inspection, site, address, width, every
):
    pages = sorted(path.relative_to(site).as_posix() for path in site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages[::every]:
        visit = browser.open(f"{address}/{page}", width)

        assert visit.problems == [] or page == "404.html", page
        assert [url for url in visit.requests if not url.startswith((address, "data:"))] == [], page
        assert browser.evaluate(inspection) == [], page


def test_the_page_of_names_describes_every_field_and_has_no_raw_role(site):
    text = (site / "api.html").read_text("utf-8")

    rows = re.findall(r'<tr class="doc-section-item">(.*?)</tr>', text, re.DOTALL)
    bare = [
        " ".join(re.sub(r"<[^>]+>", " ", row).split())
        for row in rows
        if not re.search(r'doc-md-description">\s*<[pu][ l>].*?\w', row, re.DOTALL)
    ]
    assert len(rows) > 200
    assert bare == []
    assert not re.search(r":(meth|func|class|attr|mod):", text)


def test_the_letters_of_the_referees_figure_can_be_read_on_a_phone(browser, address):
    browser.open(f"{address}/results/referee.html", 390)

    scale = browser.evaluate("""(() => {
        const figure = document.querySelector('img[src$="referee-figure-overview.svg"]')
        return figure.getBoundingClientRect().width / figure.naturalWidth
    })()""")
    assert scale > 0.8  # its letters are 12 pixels high


def test_the_navigation_of_the_site_is_folded(browser, address):
    browser.open(f"{address}/index.html", 1280)

    shown = browser.evaluate("""[...document.querySelectorAll('.md-nav--primary .md-nav__link')]
        .filter((link) => link.checkVisibility({ visibilityProperty: true, opacityProperty: true })
        ).length""")
    assert 5 < shown < 40


@pytest.mark.parametrize(
    ("page", "commands"),
    [
        ("how-to/install.html", "private-ate demo"),
        (
            "how-to/check-your-data.html",
            None,  # more than one line, and what it prints
        ),
    ],
)
def test_a_copy_button_of_the_site_copies_commands_only(browser, address, page, commands):
    browser.open(f"{address}/{page}", 1280)

    copied, shown = browser.evaluate("""(() => {
        const block = document.querySelector('.language-console')
        const button = block.querySelector('button[data-clipboard-target]')
        button.click()
        return [button.getAttribute('data-clipboard-text'), block.querySelector('code').innerText]
    })()""")

    wanted = [line[2:] for line in shown.splitlines() if line.startswith(("$ ", "> "))]
    assert copied.splitlines() == wanted
    assert not re.search(r"^[$>]", copied, re.MULTILINE)
    assert commands is None or copied == commands


def test_a_site_that_is_opened_from_a_folder_says_how_to_search(browser, site, address):
    note = "document.querySelector('.folder-note')?.textContent ?? ''"

    browser.open((site / "index.html").as_uri(), 1280)
    folder = browser.evaluate(note)
    browser.open(f"{address}/index.html", 1280)

    assert "http.server" in folder
    assert browser.evaluate(note) == ""


def test_every_parameter_on_the_api_page_of_the_site_has_its_own_default(site):
    page = (site / "api.html").read_text("utf-8")
    looked_at = 0
    for function in public_functions():
        # The page names a function where it is imported from, not where it is written.
        named = re.search(rf'id="(private_ate[\w.]*\.{function.__name__})"', page)
        rows = None if named is None else rows_of(page, named[1])
        if rows is None:
            continue
        signature = inspect.signature(function).parameters
        assert list(rows) == list(signature), function.__qualname__
        for name, (kind, default) in rows.items():
            looked_at += 1
            own = signature[name].default
            assert kind, f"{function.__qualname__}: {name} has no type"
            if own is inspect.Parameter.empty:
                assert default == "required", f"{function.__qualname__}: {name}"
            elif isinstance(own, str | int | float | bool | None):
                assert default in {repr(own), f"{own!r}"} or default.isupper(), (
                    f"{function.__qualname__}: {name} has {own!r}, not {default}"
                )
    assert looked_at > 100


def public_functions():
    """Return the functions that the API page names."""
    import private_ate

    held = (getattr(private_ate, name) for name in private_ate.__all__)
    return [each for each in held if inspect.isfunction(each)]


def rows_of(page, path):
    """Return type and default by name, from the table of a function's parameters."""
    start = page.find(f'id="{path}"')
    if start < 0:
        return None
    end = page.find('<div class="doc doc-object', start)
    found = re.search(r"<table>.*?</table>", page[start:end], re.DOTALL)
    if found is None:  # a function of one parameter, which its signature shows
        return None
    table = found[0]
    rows = {}
    for row in re.findall(r'<tr class="doc-section-item">(.*?)</tr>', table, re.DOTALL):
        cells = [
            unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", cell)).strip())
            for cell in re.findall(r"<td>(.*?)</td>", row, re.DOTALL)
        ]
        rows[cells[0]] = (cells[1], cells[-1])
    return rows
