"""Save and load models, draws, inferences and fits: npz files without pickle (or csv), written whole or not at all."""

from nnbm.store.fits import StoredFit, load_fit, save_fit
from nnbm.store.inferences import load_inference, save_inference
from nnbm.store.models import load_model, save_model
from nnbm.store.samples import load_samples, save_samples

__all__ = [
    "StoredFit",
    "load_fit",
    "load_inference",
    "load_model",
    "load_samples",
    "save_fit",
    "save_inference",
    "save_model",
    "save_samples",
]
