"""A writer of the smallest PDFs that the tests of ``ingest`` need."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["Line", "make_pdf"]

Line = tuple[float, float, str]
"""Font size in points, distance from the lower edge in points, and text (ASCII)."""


def make_pdf(pages: Sequence[Sequence[Line]], *, title: str = "", encrypted: bool = False) -> bytes:
    """Lines of Helvetica on pages of 595 by 842 points; ``encrypted`` claims a password."""
    count = len(pages)
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(count))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {count} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, lines in enumerate(pages):
        stream = "\n".join(
            f"BT /F1 {size} Tf 72 {height} Td ({_escaped(text)}) Tj ET" for size, height, text in lines
        )
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842]"
            f" /Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * number} 0 R >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    objects.append(f"<< /Title ({_escaped(title)}) >>")
    trailer = f"/Size {len(objects) + 1} /Root 1 0 R /Info {len(objects)} 0 R"
    if encrypted:
        key = "<" + "5a" * 32 + ">"
        objects.append(f"<< /Filter /Standard /V 1 /R 2 /O {key} /U {key} /P -4 >>")
        identity = f"[<{'00' * 16}> <{'00' * 16}>]"
        trailer = f"/Size {len(objects) + 1} /Root 1 0 R /Encrypt {len(objects)} 0 R /ID {identity}"
    body, offsets = "%PDF-1.4\n", []
    for number, source in enumerate(objects, 1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{source}\nendobj\n"
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    return (
        f"{body}xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
        f"trailer\n<< {trailer} >>\nstartxref\n{len(body)}\n%%EOF\n"
    ).encode("ascii")


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
