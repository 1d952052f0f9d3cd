import pytest

from nnbm.page import Page


def test_everything_is_text():
    page = Page("<i>t</i>").heading("<h>").text("<p>").note("<n>").code("<c>").items(["<li>"])
    page.table(["<th>"], [["<td>"]], "<caption>")
    for tag in ("<i>t", "<p><p>", "<h>", "<n>", "<c>", "<li><li>", "<th><th>", "<td><td>"):
        assert tag not in page.html
    assert "&lt;td&gt;" in page.html


def test_an_empty_list_leaves_no_trace():
    assert "<ul>" not in Page("t").items([]).html


def test_a_page_is_written_whole_or_not_at_all(tmp_path):
    Page("t").text("a").save(tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text().startswith("<!doctype html>")
    with pytest.raises(FileNotFoundError):
        Page("t").save(tmp_path / "no" / "a.html")
    assert [file.name for file in tmp_path.iterdir()] == ["a.html"]
