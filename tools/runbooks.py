"""Write the page of runbooks, which the daemon serves: ``python -m tools.runbooks``."""

from __future__ import annotations

import re
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parent.parent
TEMPLATE = ROOT / "gwmond/data/runbooks.html.j2"
_WHERE = "/usr/share/doc/gwmond", "/opt/gwmond/share/doc/gwmond"
_REASONS = "reasons-of-a-bottleneck"


def _section(document: str, title: str) -> str:
    """Return a section of a document without its title, as HTML."""
    text = (ROOT / "docs" / document).read_text()
    pattern = rf"^## {title}\n(.*?)(?=^## |\Z)"
    section = re.search(pattern, text, flags=re.MULTILINE | re.DOTALL)
    assert section is not None
    html: str = MarkdownIt().enable("table").render(section[1])
    html = html.replace("<table>", '<div class="wide" tabindex="0"><table>')
    return html.replace("</table>", "</table></div>")


def template() -> str:
    """Return the template: "The alerts" of docs/alerts.md, and the reasons of docs/sites.md.

    Each alert's heading has the alert's name in lower case as its id.  Other documents are named.
    """
    html = _section("alerts.md", "The alerts")
    names = re.findall(r"<h3>(\w+)</h3>", html)
    alerts = ", ".join(f'<a href="#{name.lower()}">{name}</a>' for name in names)
    html = re.sub(r"<h3>(\w+)</h3>", lambda h: f'<h2 id="{h[1].lower()}">{h[1]}</h2>', html)
    table = _section("sites.md", "Reasons of a bottleneck")
    html = f'{html}<h2 id="{_REASONS}">Reasons of a bottleneck</h2>\n{table}'
    html = re.sub(rf'<a href="sites.md(#{_REASONS})">.*?</a>', r'<a href="\1">its table</a>', html)
    html = re.sub(r'<a href="([\w-]+\.md)[^"]*">(.*?)</a>', _named, html, flags=re.DOTALL)
    return (
        "{# Made of docs/alerts.md by python -m tools.runbooks. #}\n"
        '{% extends "page.html.j2" %}\n'
        "{% block title %}Runbooks - gwmond{% endblock %}\n"
        "{% block renewal %}{% endblock %}\n"
        "{% block main %}{% raw %}\n<h1>Alerts, and what to do</h1>\n"
        f'<p>{alerts}; <a href="#{_REASONS}">reasons of a bottleneck</a>.</p>\n'
        "<p>Documents that are named (docs/...) are on gwmond's host, in "
        f"<code>{_WHERE[0]}</code> (packages) or <code>{_WHERE[1]}</code>.</p>\n"
        f"{html}"
        "{% endraw %}{% endblock %}\n"
    )


def _named(link: re.Match[str]) -> str:
    """Return a document that the daemon does not serve, as text."""
    name = f"<code>docs/{link[1]}</code>"
    return name if link[2] == link[1] else f"{link[2]} ({name})"


if __name__ == "__main__":
    TEMPLATE.write_text(template())
