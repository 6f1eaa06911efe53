"""`docs/reading.md` can be read in one afternoon: its files are there, and are not too long together."""

from __future__ import annotations

import re

from house import ROOT

LINES_MAX = 6_500


def test_the_reading_list_fits_into_an_afternoon() -> None:
    page = (ROOT / "docs" / "reading.md").read_text()
    rows = re.findall(r"^\| (?:`([^`]+)`|\[[^\]]+\]\(([^)]+)\)) \|", page, re.MULTILINE)
    files = [ROOT / code if code else ROOT / "docs" / document for code, document in rows]
    assert len(files) >= 15
    lines = {file.name: len(file.read_text().splitlines()) for file in files}
    assert sum(lines.values()) <= LINES_MAX, (sum(lines.values()), lines)
