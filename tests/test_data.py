import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nnbm.data import read_table


def written(folder, text, name="t.csv"):
    file = folder / name
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return file


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a,b\n1,2\n3,4.5\n", "t.csv"),
        ("a;b\n1;2\n3;4.5\n", "t.csv"),
        ("a\tb\r\n1\t2\r\n3\t4.5\r\n", "t.tsv"),
        ('\ufeff"a","b"\n"1","2"\n\n 3 , 4.5 \n', "t.txt"),
    ],
)
def test_usual_tables_are_read(tmp_path, text, name):
    table = read_table(written(tmp_path, text, name))
    assert table.names == ("a", "b")
    np.testing.assert_array_equal(table.values, [[1, 2], [3, 4.5]])


def test_a_table_without_names(tmp_path):
    table = read_table(written(tmp_path, "1,2\n3,4\n"))
    assert table.names == ()
    np.testing.assert_array_equal(table.values, [[1, 2], [3, 4]])


def test_columns_are_chosen_in_their_order_and_others_may_be_text(tmp_path):
    table = read_table(written(tmp_path, "id,a,b\nx,1,2\ny,3,4\n"), ["b", "a"])
    assert table.names == ("b", "a")
    np.testing.assert_array_equal(table.values, [[2, 1], [4, 3]])


@pytest.mark.parametrize(
    ("text", "columns", "said"),
    [
        ("", None, "is empty"),
        ("a,b\n1,x7\n", None, r"row 1 of 'b' in .* is 'x7', not a number"),
        ("a,b\n1,2\n3,\n", None, r"row 2 of 'b' in .* is empty"),
        ("1,2\n3,q\n", None, r"row 2 of column 1 in .* is 'q'"),
        ("a,b\n1,2\n3\n", None, "must have 2 cells, but row 2 has 1"),
        ("a,a\n1,2\n", None, "'a' stands 2 times"),
        ("a,\n1,2\n", None, "'' stands 1 times"),
        ("a,b\n1,2\n", ["c"], "'c' is not a column of .*; they are a, b"),
        ("1,2\n", ["a"], "its first line holds numbers"),
        (b"a,b\n1,\xff\n", None, "not sound text"),
        ('a,b\n1,"2\n', None, "not sound text"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path, text, columns, said):
    with pytest.raises(ValueError, match=said):
        read_table(written(tmp_path, text), columns)


def test_npy_files_and_only_sound_ones(tmp_path):
    np.save(tmp_path / "t.npy", np.arange(6.0).reshape(3, 2))
    assert read_table(tmp_path / "t.npy").values.shape == (3, 2)
    with pytest.raises(ValueError, match="no names to choose"):
        read_table(tmp_path / "t.npy", ["a"])
    np.save(tmp_path / "o.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="not a sound npy file"):
        read_table(tmp_path / "o.npy")
    with pytest.raises(ValueError, match=r"ending in \.npy"):
        read_table(tmp_path / "t.xlsx")


@given(st.lists(st.lists(st.floats(0, 1e300), min_size=3, max_size=3), min_size=1, max_size=8))
def test_numbers_come_back_to_the_last_digit(tmp_path_factory, rows):
    text = "a,b,c\n" + "\n".join(",".join(map(repr, row)) for row in rows)
    np.testing.assert_array_equal(read_table(written(tmp_path_factory.mktemp("t"), text)).values, rows)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(tmp_path_factory, text):
    try:
        values = read_table(written(tmp_path_factory.mktemp("t"), text.encode("utf-8", "surrogatepass"))).values
    except ValueError:
        return
    assert values.ndim == 2
