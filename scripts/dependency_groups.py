"""Print the requirements of the named dependency groups of pyproject.toml, for pips that do not know --group."""

import sys
import tomllib
from pathlib import Path

groups = tomllib.loads((Path(__file__).resolve().parent.parent / "pyproject.toml").read_text())["dependency-groups"]
sys.stdout.write("\n".join(requirement for name in sys.argv[1:] for requirement in groups[name]) + "\n")
