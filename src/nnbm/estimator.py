"""The scikit-learn shell around `learning`: no mathematics here."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from nnbm.arrays import FloatArray, IntArray, as_floats, as_whole
from nnbm.ends import checked_ends
from nnbm.errors import UnreliableWarning
from nnbm.learning.density import log_norm
from nnbm.learning.edges import EdgeSet, checked_edges
from nnbm.learning.fit import MOMENT_METHODS, Fitted, Request, fit, fit_moments
from nnbm.learning.moments import Moments, checked_moments, moments
from nnbm.learning.parameters import Parameters
from nnbm.learning.pseudolikelihood import conditional_means, log_pseudolikelihoods
from nnbm.learning.rows import Rows
from nnbm.model import NNBM, Coupling
from nnbm.sampling.sample import sample
from nnbm.site import site_between
from nnbm.store import StoredFit, load_fit, save_fit
from nnbm.stream import Seed

__all__ = ["NonnegativeBoltzmann"]

_CHAINS, _THIN = 4, 10
_FEWEST = 500  # draws per chain, or R-hat would warn of nothing but their number


class NonnegativeBoltzmann(TransformerMixin, BaseEstimator):
    """Learn the network behind a table of nonnegative measurements, with standard errors.

    method: "auto" (pseudo-likelihood from score matching), "pseudolikelihood", "score_matching", "likelihood" (all
    consistent, with standard errors); "isusp", "susp", "ep", "downs" (from moments alone, in milliseconds, biased),
    "ascent" (the paper's climb). edges: None leaves every pair free; arrays (i, j) only those pairs. ridge: pulls
    couplings, measured in units of the variables' means, towards 0 (0.01 is mild, 1 strong). seed: of the draws that
    "likelihood" takes, and of `score` where only sampling knows ln Z. lower, upper: ends of the variables, one number
    or (n,), infinite where there is none: doubly truncated normals.

    After fit: `model_`, `bias_` (n,), `coupling_` (n, n; sparse where not all pairs are edges), `standard_errors_`
    (the same two, `.bias` and `.coupling`; None for biased methods), `edges_` (i, j), `report_` (what was done, in
    sentences), `method_`, `n_iter_`, `n_features_in_`, `feature_names_in_`.

    >>> from nnbm import gallery, sample
    >>> truth = gallery.square_grid(3, 3, coupling=0.5)
    >>> X = sample(truth, draws=5000, chains=4, seed=0).flat
    >>> est = NonnegativeBoltzmann(edges=truth.edges).fit(X)
    >>> bool(abs(est.bias_ - truth.bias).max() < 5 * est.standard_errors_.bias.max())
    True
    >>> print(est.report_)
    pseudolikelihood, 3 steps: 9 variables, 12 free couplings, 20000 rows.
    Newton's method began at score matching's answer.
    Pseudo-likelihood is consistent, and near the statistical floor when rows are many.
    """

    _log_partition: float | None = None

    def __init__(
        self,
        method: str = "auto",
        *,
        edges: Any = None,
        ridge: float = 0.0,
        seed: Seed = 0,
        lower: ArrayLike = 0.0,
        upper: ArrayLike = np.inf,
    ) -> None:
        self.method = method
        self.edges = edges
        self.ridge = ridge
        self.seed = seed
        self.lower = lower
        self.upper = upper

    def fit(
        self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None, *, names: Sequence[str] = ()
    ) -> Self:
        """Learn from a table X (rows, n) within the ends; weights count like repeats of a row. y is ignored.

        names: of the columns, where X is an array; a data frame brings its own.
        """
        with self._all_or_nothing():
            table = self._table(X, reset=True)
            self._name(names)
            rows = self._rows(table, sample_weight, varying=True)
            self._keep(fit(rows, self._free(rows.n), self._request), f"{rows.count} rows")
            self.__dict__.pop("moments_", None)  # of another table
        return self

    def partial_fit(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> Self:
        """Add rows to the moments seen so far and learn from them: methods that need no more than moments.

        Where the rows so far are too few to learn from, an error says so, and they are kept for the next call. It
        starts anew after `fit`, and goes on after `fit_moments` and `load`.
        """
        self._require_moments_suffice()
        with self._all_or_nothing():
            first = not hasattr(self, "moments_")
            table = self._table(X, reset=first)
            rows = self._rows(table, sample_weight)
            new = moments(rows, self._free(rows.n))
            self.moments_: Moments = new if first else self.moments_.merged(new)
        return self._learn_from_moments(f"{self.moments_.total:g} rows in parts")

    def fit_moments(
        self, mean: ArrayLike, covariance: ArrayLike, rows: float = np.inf, *, names: Sequence[str] = ()
    ) -> Self:
        """Learn from published moments: mean (n,), covariance (n, n) and how many rows they are from.

        names: of the variables; labelled moments (pandas) bring their own.

        >>> est = NonnegativeBoltzmann().fit_moments([1.0, 0.8], [[0.5, -0.1], [-0.1, 0.4]])
        >>> est.method_
        'isusp'
        """
        self._require_moments_suffice()
        with self._all_or_nothing():
            center, spread = checked_moments(mean, covariance, rows, lower=self.lower, upper=self.upper)
            self.n_features_in_ = center.size
            self.__dict__.pop("feature_names_in_", None)
            self._name(names or _labels(covariance) or _labels(mean))
            free = self._free(center.size)
            variance = np.diagonal(spread).copy()
            site = site_between(*checked_ends(self.lower, self.upper, center.size, self._names))
            self.moments_ = Moments(free, float(rows), center, variance, spread[free.i, free.j], site)
            self._learn_from_moments("moments" if np.isinf(rows) else f"moments of {rows:g} rows")
            if np.isinf(rows):
                del self.moments_  # further rows would weigh nothing beside them
        return self

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """(rows,) ln p(x) = b.x - 1/2 x'Wx - ln Z of every row: low values are unusual rows."""
        points = self._read(X).columns.T
        return np.asarray(-self.model_.energy(points) - self.log_partition_)

    def score(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> float:
        """Mean log-likelihood of a row, the mean of `score_samples`: higher is better, and differences are in nats."""
        return _mean(self.score_samples(X), sample_weight)

    def score_pseudo_samples(self, X: ArrayLike) -> FloatArray:
        """(rows,) log pseudo-likelihood sum_i ln p(x_i | the others) of every row, which needs no Z."""
        return log_pseudolikelihoods(self._read(X), self._parameters)

    def score_pseudo(self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None) -> float:
        """Mean of `score_pseudo_samples`: how well the model predicts every variable from the others."""
        return _mean(self.score_pseudo_samples(X), sample_weight)

    @property
    def log_partition_(self) -> float:
        """ln Z of the learned model: by mean field where that is accurate, else by sampling with `seed`, to 0.01.

        Worked out once, when a score first asks for it.
        """
        check_is_fitted(self)
        if self._log_partition is None:
            self._log_partition = log_norm(self.model_, self.seed)
        return self._log_partition

    def transform(self, X: ArrayLike) -> FloatArray:
        """(rows, n) what the network expects of every variable given the others in its row: <x_i | x_j, j != i>."""
        return conditional_means(self._read(X), self._parameters).T

    def sample(self, n_samples: int = 1, *, seed: Seed = None) -> FloatArray:
        """(n_samples, n) draws from the learned model, ten Gibbs sweeps apart."""
        check_is_fitted(self)
        count = as_whole("n_samples", n_samples)
        if count < 1:
            raise ValueError(f"n_samples: at least 1 is needed, but n_samples = {count}.")
        per_chain = max(_FEWEST, -(-count // _CHAINS))
        drawn = sample(self.model_, per_chain, chains=_CHAINS, thin=_THIN, seed=seed, progress=False)
        every = drawn.draws.swapaxes(0, 1).reshape(-1, self.model_.n)  # chain by chain in turn
        return every[np.linspace(0, len(every) - 1, count).astype(np.int64)]

    def clearest(self, count: int) -> tuple[IntArray, FloatArray, FloatArray | None]:
        """The `count` clearest couplings, those furthest from 0 in standard errors (or largest, where there are none).

        Their places in `edges_`, the couplings, and their standard errors or None; (count,) each.
        """
        check_is_fitted(self)
        w = self._parameters.couplings
        errors = None if self.standard_errors_ is None else self.standard_errors_.couplings
        clear = np.abs(w) if errors is None else np.abs(w) / errors
        places = np.argsort(-clear, kind="stable")[:count]
        return places, w[places], None if errors is None else errors[places]

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """The variables' names."""
        check_is_fitted(self)
        names = list(self.model_.names) or [f"x{k}" for k in range(self.n_features_in_)]
        given = names if input_features is None else [str(name) for name in input_features]
        if len(given) != len(names) or (self.model_.names and given != names):
            raise ValueError("input_features: they are not the columns that were seen in fit. Leave them out.")
        return np.asarray(given, dtype=object)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to one npz file, whole or not at all, never a pickle."""
        check_is_fitted(self)
        save_fit(
            StoredFit(
                parameters=self._parameters,
                errors=self.standard_errors_,
                names=self.model_.names,
                requested=str(self.method),
                method=self.method_,
                ridge=float(self.ridge),
                iterations=self.n_iter_,
                all_pairs=self.edges is None,
                report=self.report_,
                seed=self.seed if isinstance(self.seed, int) else None,
                site=self.model_.site,
                moments=getattr(self, "moments_", None),
            ),
            path,
        )

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; the model is checked like any other."""
        stored = load_fit(path)
        edges = stored.parameters.edges
        free = None if stored.all_pairs else (edges.i, edges.j)
        ends = stored.site.lower, stored.site.upper
        est = cls(stored.requested, edges=free, ridge=stored.ridge, seed=stored.seed, lower=ends[0], upper=ends[1])
        est.n_features_in_ = edges.n
        if stored.names:
            est.feature_names_in_ = np.array(stored.names, dtype=object)
        est._set(stored.parameters, stored.errors, stored.model())
        est.method_, est.n_iter_, est.report_ = stored.method, stored.iterations, stored.report
        if stored.moments is not None:
            est.moments_ = stored.moments
        return est

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """What is inside succeeds, or the estimator is as it was."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _learn_from_moments(self, seen: str) -> Self:
        try:
            self._keep(fit_moments(self.moments_, self._request), seen)
        except (ValueError, RuntimeError) as error:
            error.add_note(f"The {self.moments_.total:g} rows seen so far are kept: go on with partial_fit.")
            raise
        return self

    def _keep(self, fitted: Fitted, seen: str) -> None:
        found = fitted.estimate
        free = found.parameters.edges
        self._set(found.parameters, found.errors, fitted.model)
        self.method_, self.n_iter_ = found.method, found.iterations
        steps = f"{found.iterations} step{'' if found.iterations == 1 else 's'}"
        head = f"{found.method}, {steps}: {free.n} variables, {free.size} free couplings, {seen}."
        self.report_ = "\n".join((head, *found.remarks, *found.doubts))
        if found.doubts:
            warnings.warn(f"{found.method}: {' '.join(found.doubts)}", UnreliableWarning, stacklevel=3)

    def _set(self, parameters: Parameters, errors: Parameters | None, model: NNBM) -> None:
        self._parameters = parameters
        self._log_partition = None
        self.model_, self.bias_ = model, parameters.bias
        self.coupling_: Coupling = model.coupling
        self.standard_errors_ = errors
        self.edges_: tuple[IntArray, IntArray] = (parameters.edges.i, parameters.edges.j)

    def _name(self, names: Sequence[str]) -> None:
        if len(names) == 0:
            return
        if len(names) != self.n_features_in_ or len(set(names)) < len(names):
            raise ValueError(
                f"names: {self.n_features_in_} that differ are needed, one per column, but they are {list(names)!r}."
            )
        self.feature_names_in_ = np.array(names, dtype=object)

    def _read(self, X: ArrayLike) -> Rows:
        """New rows for a fitted model: checked, but they need not vary."""
        check_is_fitted(self)
        return self._rows(self._table(X, reset=False))

    def _rows(self, table: FloatArray, weights: ArrayLike | None = None, *, varying: bool = False) -> Rows:
        return Rows.checked(
            table, weights=weights, names=self._names, varying=varying, lower=self.lower, upper=self.upper
        )

    def _table(self, X: ArrayLike, *, reset: bool) -> FloatArray:
        """X as numbers, its columns' names remembered (`reset`) or compared."""
        if np.ma.is_masked(X):
            raise TypeError("X: masked entries have no value here. Drop their rows, or fill them (X.filled(...)).")
        return np.asarray(validate_data(self, X, dtype=np.float64, ensure_all_finite=False, reset=reset))

    def _free(self, n: int) -> EdgeSet:
        return checked_edges(self.edges, n)

    def _require_moments_suffice(self) -> None:
        if self.method not in ("auto", *MOMENT_METHODS):
            raise ValueError(
                f"method: {self.method!r} needs all rows at once. Use fit(X), or one of {', '.join(MOMENT_METHODS)}."
            )

    @property
    def _request(self) -> Request:
        return Request(self.method, self.ridge, self.seed, self._names)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(map(str, getattr(self, "feature_names_in_", ())))

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a model."""
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Tags:
        """Nonnegative tables only, if that is where the variables live."""
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = bool(np.all(np.asarray(self.lower) >= 0.0))
        return tags


def _mean(scores: FloatArray, sample_weight: ArrayLike | None) -> float:
    weights = None if sample_weight is None else as_floats("sample_weight", sample_weight)
    return float(np.average(scores, weights=weights))


def _labels(labelled: object) -> list[str]:
    """The labels of a pandas object, if they are strings."""
    found = list(getattr(labelled, "columns", getattr(labelled, "index", ()))) if hasattr(labelled, "iloc") else []
    return found if all(isinstance(name, str) for name in found) else []
