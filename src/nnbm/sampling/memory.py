"""How much memory there is to take: of the machine, and of the container that the process may be in."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["available_bytes"]


def available_bytes(root: Path = Path("/")) -> int | None:
    """The least of what the kernel calls available and what each control group leaves; None where nothing tells.

    root: where /proc and /sys are.
    """
    found = [*_of_machine(root / "proc/meminfo"), *_of_groups(root)]
    if not found and "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        found = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    return min(found, default=None)


def _of_machine(meminfo: Path) -> list[int]:
    return [1024 * int(words[1]) for words in _lines(meminfo) if words[0] == "MemAvailable:"]


def _of_groups(root: Path) -> list[int]:
    """What is left of each limit, from the process's own group up: version 2, then version 1."""
    groups = root / "sys/fs/cgroup"
    found = []
    for line in map(" ".join, _lines(root / "proc/self/cgroup")):
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            base, names = groups, ("memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            base, names = groups / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        own = base / path.strip("/")
        for folder in (own, *own.parents):
            if folder.is_relative_to(base):
                found += _left(folder, *names)
    return found


def _left(folder: Path, limit: str, used: str) -> list[int]:
    """The limit less what is used, not counting file caches, which give way; nothing where there is no limit."""
    caches = {words[0]: int(words[1]) for words in _lines(folder / "memory.stat") if len(words) == 2}
    limits, uses = _lines(folder / limit), _lines(folder / used)
    if not limits or not uses or not limits[0][0].isdigit():  # "max"
        return []
    cache = caches.get("total_inactive_file", caches.get("inactive_file", 0))
    return [max(0, int(limits[0][0]) - int(uses[0][0]) + cache)]


def _lines(path: Path) -> list[list[str]]:
    """The words of each line that has any; none of a file that is not there."""
    try:
        text = path.read_text()
    except OSError:
        return []
    return [words for words in map(str.split, text.splitlines()) if words]
