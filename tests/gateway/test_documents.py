"""The example of the documents with a real gateway runs as it is printed."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gateway
DOCS = Path(__file__).resolve().parents[2] / "docs" / "sandbox.md"


@pytest.mark.skipif(not DOCS.is_file(), reason="the documents are not beside the tests")
def test_the_example_of_the_whole_chain_runs_as_it_is_written(tmp_path):
    text = DOCS.read_text(encoding="utf-8").partition("## In tests\n")[2]
    example = text.split("```python\n")[1].split("```")[0]
    (tmp_path / "pytest.ini").touch()
    (tmp_path / "test_bills.py").write_text(example, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, check=False, encoding="utf-8", timeout=150
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
