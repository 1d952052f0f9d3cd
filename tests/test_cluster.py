import pytest

from nnbm.cluster import run_tasks


def square(x: int) -> int:
    return x * x


@pytest.mark.parametrize("workers", [1, 2, None])
def test_every_task_is_done_once(workers):
    assert sorted(run_tasks(square, range(7), workers)) == [0, 1, 4, 9, 16, 25, 36]


def test_no_tasks_are_no_work():
    assert list(run_tasks(square, [])) == []
