# SPDX-License-Identifier: Apache-2.0
"""``weft devices``, ``weft errors`` and ``weft docs``."""

import pathlib
import re
import textwrap

import weft
from weft import _terminal
from weft._errors import error


def not_installed(error):
    """What is missing and what helps, where a weft.Error says that something is not installed; otherwise empty."""
    if not error.code.endswith(".absent"):
        return ""
    # An error that came from another process has its text only.
    message = error.message or str(error).splitlines()[0].partition("]: ")[2]
    return f"{message}: {error.help}" if error.help else message


def bare_reason(reason):
    """A reason without its slug and the words "device D is absent", which the table's columns have said."""
    text = re.sub(r"^error\[[^]]*\]: ", "", reason)
    return re.sub(r'^device "?[\w:]+"? is (absent|not available): ', "", text)


def devices(args):
    def first(text):
        return text.splitlines()[0] if text else ""

    for d in weft.devices():
        state = "present" if d.available else "absent"
        what = first(d.description) if d.available else first(d.reason)
        line = f"{d.name:<12} {d.kind:<12} {state:<8} {bare_reason(what)}"
        print(_terminal.filled(line, " " * 35))


def _names(known, asked):
    """Whether the slug begins so, or is one of the family, as array.{…}.dtype is of array.add.dtype."""
    family = re.escape(known).replace(re.escape("{…}"), "[a-z0-9_]+")
    return known.startswith(asked) or re.fullmatch(family, asked)


def errors_page():
    """The manual of errors: of an installation, or of the source tree."""
    package = pathlib.Path(weft.__file__).resolve().parent
    places = [
        package / "errors.md",
        *(p / "docs/errors.md" for p in (package.parent, package.parent.parent)),
    ]
    page = next((p for p in places if p.exists()), None)
    if page is None:
        raise error(
            "io",
            "cli.errors.page",
            "the manual of errors is not part of this installation",
            notes=["looked for " + ", ".join(map(str, places))],
        )
    return page


def _site():
    """The folder of the built documentation: of an installation, or made by tools/site in the source tree."""
    package = pathlib.Path(weft.__file__).resolve().parent
    places = [package / "site", package.parents[1] / "build-site/site"]
    site = next((p for p in places if (p / "index.html").exists()), None)
    if site is None:
        raise error(
            "io",
            "cli.docs.absent",
            "the documentation has not been built",
            notes=["looked for " + ", ".join(map(str, places))],
            help="tools/site builds it in a source tree; its text is docs/index.md",
        )
    return site


def _serve(site, page):
    """Serves the site to this machine until Ctrl-C."""
    import functools
    import http.server
    import io

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words):
            pass

        def send_head(self):
            asked = pathlib.Path(self.translate_path(self.path))
            script = asked.with_suffix(".js")
            if asked.name != "search_index.json" or asked.exists() or not script.exists():
                return super().send_head()
            # Packages hold the index once: as the script that pages of the file system read.
            index = script.read_bytes().removeprefix(b"var __index = ")
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(index)))
            self.end_headers()
            return io.BytesIO(index)

    handler = functools.partial(Quiet, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as here:
        place = page.relative_to(site.resolve() if site.resolve() in page.parents else site)
        print(f"open http://127.0.0.1:{here.server_address[1]}/{place.as_posix()}", flush=True)
        here.serve_forever(poll_interval=0.2)


def docs(args):
    site = _site()
    page = site / "index.html"
    if args.page:
        name = args.page.removesuffix(".md").removesuffix(".html")
        page = (site / f"{name}.html").resolve()
        named = [p for p in site.glob("*/*.html") if p.stem == name]
        if not page.exists() and len(named) == 1:  # without its folder, where only one is called so
            page = named[0].resolve()
        if not page.is_relative_to(site.resolve()) or not page.exists():
            import difflib

            known = [str(p.relative_to(site).with_suffix("")) for p in sorted(site.rglob("*.html"))]
            near = difflib.get_close_matches(name, known, 3, 0.4)
            raise error(
                "value",
                "cli.docs.page",
                f'there is no page "{args.page}"',
                help=f"nearest: {', '.join(near)}" if near else "weft docs opens the first page",
            )
    if args.serve:
        return _serve(site, page)
    print(page if args.path else page.as_uri())
    if not args.path:
        import webbrowser

        webbrowser.open(page.as_uri())


def _rows(page):
    """The rows of the manual: {"slug", "kind", "says", ...} by the page's own column titles."""
    lines = [line for line in page.read_text("utf-8").splitlines() if line.startswith("| ")]
    titles, *rows = ([c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines)
    return [dict(zip(titles, row)) for row in rows]


def _shown(row):
    """One row as a reader at a terminal wants it: the slug and its class, then a line for each thing that is known."""
    from weft._errors import error as made

    slug = row["slug"].strip("`")
    width = min(_terminal.columns() or 80, 110)
    out = [f"error[{slug}]  weft.{type(made(row['kind'], slug, '')).__name__}"]
    for title in ("says", "found, legal", "repair", "raised in"):
        if row.get(title):
            text = row[title].replace("\\|", "|")
            head = f"  {title:<14}"
            out.append(
                textwrap.fill(
                    text,
                    width,
                    initial_indent=head,
                    subsequent_indent=" " * len(head),
                    break_on_hyphens=False,
                )
            )
    return "\n".join(out)


def errors(args):
    rows = _rows(errors_page())
    if not args.slug:
        widest = max(len(row["slug"]) for row in rows)
        width = _terminal.columns()
        widest = widest if width is None else min(widest, width // 3)
        for row in rows:
            line = f"{row['slug'].strip('`'):<{widest}} {row['says']}".rstrip()
            print(_terminal.filled(line, " " * (widest + 1)))
        return
    found = [row for row in rows if _names(row["slug"].strip("`"), args.slug)]
    if not found:
        import difflib

        known = [row["slug"].strip("`") for row in rows]
        near = difflib.get_close_matches(args.slug, known, 3)
        raise error(
            "value",
            "cli.errors.slug",
            f'no error has the slug "{args.slug}", and none begins so',
            help=f"nearest: {', '.join(near)}" if near else "weft errors lists all",
        )
    exact = [row for row in found if row["slug"].strip("`") == args.slug]
    print("\n\n".join(_shown(row) for row in exact or found))
