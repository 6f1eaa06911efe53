"""OutputFolder: one writer at a time, whole files only, nothing of others touched. No Spark is needed.

publish_*   the next epoch, by one rename
content_*   what may be in the folder at the beginning
"""

from __future__ import annotations

from pathlib import Path

import pytest

from timely.spark.errors import OutputError
from timely.spark.output_folder import OutputFolder, changes_file

JOB: dict[str, object] = {"input": "x"}


def staged(folder: OutputFolder, text: str = "rows") -> Path:
    file = folder.fresh_staging("epochs")
    file.write_text(text)
    return file


def test_publish_names_the_next_epoch_and_counts_it(tmp_path: Path) -> None:
    folder = OutputFolder(tmp_path / "changes", JOB)
    for epoch in range(3):
        folder.publish(staged(folder, f"epoch {epoch}"), epoch)
    assert (folder.committed, folder.committed_before) == (3, 0)
    assert (folder.path / changes_file(2)).read_text() == "epoch 2"
    with pytest.raises(AssertionError, match="epoch 5 after 2"):
        folder.publish(staged(folder), 5)
    folder.close()
    again = OutputFolder(tmp_path / "changes", JOB)
    assert (again.committed, again.committed_before) == (3, 3)
    again.close()


def test_publish_keeps_order_of_names_beyond_eight_digits() -> None:
    assert changes_file(7) == "epoch-00000007.parquet"
    assert changes_file(10**9) == "epoch-1000000000.parquet"


def test_content_in_the_making_is_removed(tmp_path: Path) -> None:
    folder = OutputFolder(tmp_path, JOB)
    folder.publish(staged(folder), 0)
    folder.close()
    (tmp_path / "_staging").mkdir()
    (tmp_path / "_staging" / "half").write_text("of an epoch")
    OutputFolder(tmp_path, JOB).close()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["_job.json", "_lock", changes_file(0)]


def test_content_with_a_gap_or_of_nobody_is_an_error(tmp_path: Path) -> None:
    folder = OutputFolder(tmp_path, JOB)
    for epoch in range(3):
        folder.publish(staged(folder), epoch)
    folder.close()
    (tmp_path / changes_file(1)).unlink()
    with pytest.raises(OutputError, match="lacks the file of epoch 1, but has later ones"):
        OutputFolder(tmp_path, JOB)
    (tmp_path / changes_file(2)).unlink()
    (tmp_path / "_job.json").unlink()
    with pytest.raises(OutputError, match=r"has epochs but no _job\.json"):
        OutputFolder(tmp_path, JOB)
