"""Makes the handbook's PDF documents from ``pdf_sources/*.md``; the PDFs are committed: only editors run it.

    python examples/handbook/make_pdfs.py            writes every PDF
    python examples/handbook/make_pdfs.py --check    writes nothing, fails if one differs

Needs reportlab (BSD licence), which is in the ``dev`` extra. Pages aren't compressed and carry no date, so
the same version of reportlab makes the same bytes on every machine.

A source begins with the line ``<!-- target: folder/name.pdf -->`` and knows a little Markdown: headings
of three levels, paragraphs on one line, bullet and numbered lists, tables, ``**bold**``, and
``<!-- pagebreak -->``.
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.platypus import (
    BaseDocTemplate,
    Flowable,
    Frame,
    PageBreak,
    PageTemplate,
    Paragraph,
    Spacer,
    Table,
)

__all__ = ["MADE_WITH", "main", "render", "sources", "target_of"]

MADE_WITH = "5.1.0"
"""The version of reportlab that made the committed files; another one may order its bytes differently."""

HERE = Path(__file__).resolve().parent
COMPANY = "Norrfell Instruments"
_BODY = ParagraphStyle("body", fontName="Helvetica", fontSize=10.5, leading=15, spaceAfter=7)
_CELL = ParagraphStyle("cell", parent=_BODY, fontSize=9, leading=12, spaceAfter=0)
_ITEM = ParagraphStyle("item", parent=_BODY, leftIndent=14, bulletIndent=2, spaceAfter=4)
_HEADING = {
    level: ParagraphStyle(
        f"h{level}",
        fontName="Helvetica-Bold",
        fontSize=size,
        leading=size * 1.3,
        spaceBefore=before,
        spaceAfter=after,
        keepWithNext=level > 1,
    )
    for level, size, before, after in ((1, 20, 0, 12), (2, 14, 12, 6), (3, 11.5, 8, 4))
}


class _Document(BaseDocTemplate):  # type: ignore[misc]
    """A4 pages with the title and the page number at the foot, and an outline made of the headings."""

    def __init__(self, out: io.BytesIO, title: str) -> None:
        super().__init__(
            out, pagesize=A4, title=title, author=COMPANY, invariant=1, pageCompression=0,
            leftMargin=24 * mm, rightMargin=24 * mm, topMargin=22 * mm, bottomMargin=24 * mm,
        )  # fmt: skip
        self._shown_title = title
        frame = Frame(self.leftMargin, self.bottomMargin, self.width, self.height, id="page")
        self.addPageTemplates([PageTemplate(id="page", frames=[frame], onPage=self._foot)])

    def _foot(self, canvas: Any, _: Any) -> None:
        canvas.saveState()
        canvas.setFont("Helvetica", 8)
        canvas.drawString(self.leftMargin, 12 * mm, f"{COMPANY} | {self._shown_title}")
        canvas.drawRightString(A4[0] - self.rightMargin, 12 * mm, f"Page {canvas.getPageNumber()}")
        canvas.restoreState()

    def afterFlowable(self, flowable: Flowable) -> None:  # noqa: N802  (reportlab's name)
        """Put a heading into the outline."""
        level = getattr(flowable, "outline_level", None)
        if level is not None:
            key = f"h{self.seq.nextf('outline')}"
            self.canv.bookmarkPage(key)
            self.canv.addOutlineEntry(flowable.getPlainText(), key, level=level, closed=False)


def _inline(text: str) -> str:
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", escape(text))


def _table(lines: list[str]) -> Table:
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    head, body = rows[0], rows[2:]
    cells = [[Paragraph(f"<b>{_inline(cell)}</b>", _CELL) for cell in head]]
    cells += [[Paragraph(_inline(cell), _CELL) for cell in row] for row in body]
    grid = [
        ("GRID", (0, 0), (-1, -1), 0.4, colors.grey),
        ("BACKGROUND", (0, 0), (-1, 0), colors.whitesmoke),
        ("VALIGN", (0, 0), (-1, -1), "TOP"),
    ]
    widths = [460 / len(head)] * len(head)
    return Table(cells, style=grid, repeatRows=1, hAlign="LEFT", spaceAfter=10, colWidths=widths)


def _flow(text: str) -> list[Flowable]:
    """Turn a source's Markdown into what reportlab lays out."""
    flow: list[Flowable] = []
    lines = text.splitlines()
    at, top = 0, 0
    while at < len(lines):
        line = lines[at].rstrip()
        at += 1
        heading = re.match(r"(#{1,3}) (.+)", line)
        item = re.match(r"(-|\d+\.) (.+)", line)
        if not line or line.startswith("<!-- target:"):
            continue
        if line == "<!-- pagebreak -->":
            flow.append(PageBreak())
        elif heading:
            level = len(heading[1])
            top = min(level - 1, top + 1) if flow else 0
            paragraph = Paragraph(_inline(heading[2]), _HEADING[level])
            paragraph.outline_level = top
            flow.append(paragraph)
        elif line.startswith("|"):
            block = [line]
            while at < len(lines) and lines[at].startswith("|"):
                block.append(lines[at])
                at += 1
            flow += [_table(block), Spacer(1, 4)]
        elif item:
            bullet = "\u2022" if item[1] == "-" else item[1]
            flow.append(Paragraph(_inline(item[2]), _ITEM, bulletText=bullet))
        else:
            flow.append(Paragraph(_inline(line), _BODY))
    return flow


def sources() -> list[Path]:
    """Return the source of every PDF, sorted by name."""
    return sorted((HERE / "pdf_sources").glob("*.md"))


def target_of(source: Path) -> Path:
    """Return the PDF that a source makes.

    Raises:
        ValueError: the source's first line doesn't name it.
    """
    first = source.read_text(encoding="utf-8").split("\n", 1)[0]
    found = re.fullmatch(r"<!-- target: (\S+\.pdf) -->", first)
    if not found:
        raise ValueError(f"{source.name} must begin with <!-- target: folder/name.pdf -->, got {first!r}")
    return HERE / "documents" / found[1]


def render(source: Path) -> bytes:
    """Return the bytes of the PDF that a source makes."""
    text = source.read_text(encoding="utf-8")
    title = re.search(r"^# (.+)$", text, re.MULTILINE)
    out = io.BytesIO()
    _Document(out, title[1] if title else source.stem).build(_flow(text))
    return out.getvalue()


def main(argv: list[str]) -> int:
    """Write every PDF, or with ``--check`` say which differ; return the exit code."""
    different = 0
    for source in sources():
        target, made = target_of(source), render(source)
        if target.exists() and target.read_bytes() == made:
            continue
        different += 1
        name = target.relative_to(HERE).as_posix()
        if "--check" in argv:
            print(f"differs: {name}")
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(made)
            print(f"wrote {name}")
    return 1 if different and "--check" in argv else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
