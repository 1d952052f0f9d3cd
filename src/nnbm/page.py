"""One self-contained HTML page from headings, text, tables and figures: no network, no script, everything escaped."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Self

from nnbm.archive import FilePath, write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Page"]

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2530; --dim: #5b6675; --line: #d8dde4; --back: #ffffff; --band: #f4f6f8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ee; --dim: #9aa5b4; --line: #3a424d; --back: #171b21; --band: #1f252d; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--back); margin: 0 auto;
  max-width: 70rem; padding: 1.5rem; }
h1 { font-size: 1.6rem; line-height: 1.25; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
p, li { max-width: 52rem; } .dim, caption { color: var(--dim); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 0.8rem 0; }
caption { text-align: left; caption-side: bottom; padding-top: 0.4rem; font-size: 0.9rem; }
th, td { padding: 0.3rem 0.8rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
tbody tr:hover { background: var(--band); }
img { max-width: 100%; height: auto; background: #ffffff; border-radius: 6px; }
code { background: var(--band); padding: 0.1rem 0.3rem; border-radius: 4px; }
"""


@dataclass(frozen=True)
class Page:
    """A page in the making; every method adds a piece and returns the page.

    >>> "<script>" in Page("a").text("<script>").html
    False
    """

    title: str
    _pieces: list[str] = field(default_factory=list)

    def heading(self, text: str) -> Self:
        """A section's heading."""
        return self._with(f"<h2>{escape(text)}</h2>")

    def text(self, text: str) -> Self:
        """A paragraph."""
        return self._with(f"<p>{escape(text)}</p>")

    def note(self, text: str) -> Self:
        """A paragraph of small importance."""
        return self._with(f'<p class="dim">{escape(text)}</p>')

    def code(self, text: str) -> Self:
        """A command."""
        return self._with(f"<p><code>{escape(text)}</code></p>")

    def items(self, texts: Sequence[str]) -> Self:
        """A list; nothing where there are no texts."""
        return self._with(f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>") if texts else self

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> Self:
        """A table of texts, the first column to the left."""
        top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        said = f"<caption>{escape(caption)}</caption>" if caption else ""
        return self._with(
            f'<div class="wide"><table>{said}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
        )

    def figure(self, figure: Figure, description: str) -> Self:
        """A picture inside the page, described for those who do not see it."""
        png = io.BytesIO()
        figure.savefig(png, format="png", dpi=150)
        data = base64.b64encode(png.getvalue()).decode()
        return self._with(f'<p><img alt="{escape(description)}" src="data:image/png;base64,{data}"></p>')

    @property
    def html(self) -> str:
        """The page."""
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{escape(self.title)}</title><style>{_STYLE}</style></head>\n"
            f"<body><h1>{escape(self.title)}</h1>\n" + "\n".join(self._pieces) + "\n</body></html>\n"
        )

    def save(self, path: FilePath) -> None:
        """Write the page, whole or not at all."""
        write_whole(path, lambda file: file.write(self.html.encode()))

    def _with(self, piece: str) -> Self:
        self._pieces.append(piece)
        return self
