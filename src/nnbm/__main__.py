"""python -m nnbm is nnbm."""

from nnbm.cli import main

if __name__ == "__main__":
    main()
