import numpy as np
import pytest

from nnbm.archive import read_archive, write_archive, write_whole


def test_arrays_come_back_under_their_names(tmp_path):
    write_archive(tmp_path / "a.npz", "thing 1", {"x": np.arange(3.0), "name": np.array("oak")})
    back = read_archive(tmp_path / "a.npz", "thing 1", {"x"}, {"name", "more"})
    np.testing.assert_array_equal(back["x"], np.arange(3.0))
    assert str(back["name"]) == "oak"
    assert "more" not in back


def test_another_kind_and_missing_arrays_are_refused(tmp_path):
    write_archive(tmp_path / "a.npz", "thing 1", {"x": np.arange(3.0)})
    with pytest.raises(ValueError, match="it should say 'thing 2', but says 'thing 1'"):
        read_archive(tmp_path / "a.npz", "thing 2", {"x"})
    with pytest.raises(ValueError, match="lacks its array y"):
        read_archive(tmp_path / "a.npz", "thing 1", {"x", "y"})


def test_a_file_is_replaced_whole_or_stays(tmp_path):
    target = tmp_path / "a.txt"
    write_whole(target, lambda file: file.write(b"old"))

    def broken(file):
        file.write(b"half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_whole(target, broken)
    assert target.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("cut", [0, 10, 200, -1])
def test_a_cut_file_is_an_error_and_no_surprise(tmp_path, cut):
    write_archive(tmp_path / "a.npz", "thing 1", {"x": np.arange(30.0)})
    whole = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(whole[:cut])
    with pytest.raises(ValueError, match="not a sound npz file"):
        read_archive(tmp_path / "a.npz", "thing 1", {"x"})
