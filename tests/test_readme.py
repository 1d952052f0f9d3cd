"""The README's code runs as it stands, and names only what exists."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize(
    ("block", "said", "figure"), [(0, "largest R-hat", "samples.png"), (1, "pseudolikelihood", "couplings.png")]
)
def test_each_example_runs_in_under_ten_lines(block, said, figure, tmp_path, monkeypatch, capsys):
    code = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)[block]
    assert len([line for line in code.splitlines() if line.strip()]) < 10
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "README.md", "exec"), {})  # noqa: S102 (our own README)
    plt.close("all")
    assert said in capsys.readouterr().out
    assert (tmp_path / figure).stat().st_size > 10_000


def test_links_lead_somewhere():
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    assert targets
    for target in targets:
        assert (ROOT / target).exists(), target


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text()
    for page in (README, (ROOT / "CONTRIBUTING.md").read_text()):
        for target in re.findall(r"(?:`|^ +)make ([a-z-]+)", page, flags=re.MULTILINE):
            assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
