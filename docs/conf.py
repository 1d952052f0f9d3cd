"""Sphinx: Markdown through MyST, executed examples through sphinx-gallery, the furo theme."""

import sys
import warnings
from importlib.metadata import version as installed_version
from pathlib import Path

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml

sys.path.insert(0, str(Path(__file__).parent))  # films.py
project = "nnbm"
author = "The nnbm authors"
copyright = "2026, The nnbm authors"
release = version = installed_version("nnbm")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "examples/**/*.py", "examples/**/*.md5", "examples/**/*.ipynb"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist"]
myst_heading_anchors = 3
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_member_order = "bysource"
nitpicky = False

html_theme = "furo"
html_title = "nnbm"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["nnbm.css"]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "examples",
    "filename_pattern": "/plot_",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "image_scrapers": ("films.scraper", "matplotlib"),
    "plot_gallery": "True",
    "capture_repr": (),  # what an example shows, it prints or draws
}

# an example that warns is an example that is wrong
warnings.filterwarnings("error", module="__main__")


def _formula(translator, node):
    """MathML, which browsers draw themselves: pages work without a network."""
    block = node.tagname == "math_block"
    translator.body.append(tex2mathml(node.astext(), as_block=block))
    raise SkipNode


def setup(app):
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (_formula, None), (_formula, None))


html_math_renderer = "mathml"
