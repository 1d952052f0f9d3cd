"""Films in the gallery, as gif: browsers play it without a script; matplotlib's player takes icons from a server."""

import matplotlib.pyplot as plt
from matplotlib.animation import FuncAnimation
from sphinx_gallery.scrapers import figure_rst


def scraper(block, block_vars, gallery_conf):
    """Called by sphinx-gallery after each block of an example: the films that it made; their figures are done with."""
    paths = []
    for film in block_vars["example_globals"].values():
        if not isinstance(film, FuncAnimation) or film._fig not in map(plt.figure, plt.get_fignums()):
            continue  # no film, or one of an earlier block
        paths.append(str(block_vars["image_path_iterator"].next()).removesuffix("png") + "gif")
        film.save(paths[-1], writer="pillow", dpi=64)
        plt.close(film._fig)
    return figure_rst(paths, gallery_conf["src_dir"])
