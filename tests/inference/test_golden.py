"""The golden table stands (see golden.py)."""

import numpy as np
from golden import TABLE, models, rows


def stored():
    found = {}
    for line in TABLE.read_text().splitlines()[1:]:
        found[line[:20].strip(), line[20:28].strip()] = (
            line[28:43].strip(),
            [float(word) for word in line[43:].split()],
        )
    return found


def test_every_number_is_as_reviewed():
    expected, found = stored(), rows()
    assert expected.keys() == found.keys()
    for key, (status, values) in found.items():
        assert status == expected[key][0], key
        np.testing.assert_allclose(values, expected[key][1], atol=3e-8, err_msg=str(key))


def test_the_table_itself_makes_sense():
    """Where the exact answer is known, better methods are closer to it."""
    table = stored()
    for name in models():
        if (name, "exact") not in table:
            continue
        exact = np.array(table[name, "exact"][1])
        error = {
            method: abs(values[0] - exact[0])
            for (model, method), (status, values) in table.items()
            if model == name and status == "CONVERGED" and method != "exact"
        }
        assert error.get("isusp", 0.0) < 3e-3
        if "naive" in error and "isusp" in error:
            assert error["isusp"] < error["naive"] + 1e-9
