"""Estimators, metrics and selectors of scikit-learn that document support of the Array API: each a function of arrays.

A case takes arrays of one kind, NumPy's or tensors, and gives what is to be compared: arrays, numbers, tuples of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn
from sklearn import (
    calibration,
    decomposition,
    discriminant_analysis,
    kernel_approximation,
    linear_model,
    metrics,
    mixture,
    model_selection,
    naive_bayes,
    pipeline,
    preprocessing,
)

Case = Callable[..., Any]
sklearn.set_config(array_api_dispatch=True)


def data() -> dict[str, np.ndarray[Any, Any]]:
    """Arrays by the names that cases take: features, targets, classes, predictions."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(60, 4)) @ np.diag([3.0, 2.0, 1.0, 0.5]) + np.array([1.0, -2.0, 0.0, 4.0])
    y = x @ np.array([1.0, -2.0, 0.5, 3.0]) + 0.1 * rng.normal(size=60)
    classes = (x[:, 0] + 0.3 * rng.normal(size=60) > 1.0).astype(np.int64) + (x[:, 1] > -1.0).astype(np.int64)
    scores = rng.uniform(0.01, 0.99, size=(60, 3))
    two = (x[:, 0] > 1.0).astype(np.int64)
    return {
        "x": x, "y": y, "classes": classes, "two": two, "guessed": np.where(rng.uniform(size=60) < 0.2, 0, classes),
        "guessed_two": np.where(rng.uniform(size=60) < 0.2, 1 - two, two), "close": y + rng.normal(size=60),
        "positive": np.abs(y) + 0.5, "close_positive": np.abs(y) + rng.uniform(0.4, 0.9, size=60),
        "scores": scores / scores.sum(axis=1, keepdims=True), "weights": rng.uniform(0.5, 2.0, size=60),
        "labels": (rng.uniform(size=(60, 3)) > 0.5).astype(np.int64),
        "guessed_labels": (rng.uniform(size=(60, 3)) > 0.5).astype(np.int64), "rows": rng.uniform(size=(20, 6)),
        "columns": rng.uniform(size=(20, 6)),
    }  # fmt: skip


def _transformed(make: Callable[[], Any], *attributes: str) -> Case:
    """Fit, then what it makes of the features, and what it has learnt."""

    def case(x: Any, y: Any) -> Any:
        made = make()
        return (made.fit_transform(x, y), *[getattr(made, name) for name in attributes])

    return case


def _back(make: Callable[[], Any]) -> Case:
    def case(x: Any) -> Any:
        made = make().fit(x)
        return made.inverse_transform(made.transform(x))

    return case


def _regression(make: Callable[[], Any], *attributes: str, target: str = "y") -> Case:
    def case(**arrays: Any) -> Any:
        made = make().fit(arrays["x"], arrays[target])
        return (made.predict(arrays["x"]), *[getattr(made, name) for name in attributes])

    case.takes = ("x", target)  # type: ignore[attr-defined]
    return case


def _classification(make: Callable[[], Any], *attributes: str, scores: str = "predict_proba") -> Case:
    def case(x: Any, classes: Any) -> Any:
        made = make().fit(x, classes)
        return (made.predict(x), getattr(made, scores)(x), *[getattr(made, name) for name in attributes])

    return case


ESTIMATORS: dict[str, Case] = {
    "StandardScaler": _transformed(preprocessing.StandardScaler, "mean_", "var_", "scale_"),
    "StandardScaler.inverse_transform": _back(preprocessing.StandardScaler),
    "MinMaxScaler": _transformed(preprocessing.MinMaxScaler, "data_min_", "data_range_"),
    "MaxAbsScaler": _transformed(preprocessing.MaxAbsScaler, "max_abs_"),
    "Normalizer": _transformed(lambda: preprocessing.Normalizer("l2")),
    "Binarizer": _transformed(lambda: preprocessing.Binarizer(threshold=0.5)),
    "PolynomialFeatures": _transformed(lambda: preprocessing.PolynomialFeatures(degree=2)),
    "LabelEncoder": lambda classes: preprocessing.LabelEncoder().fit_transform(classes),
    "KernelCenterer": lambda x: preprocessing.KernelCenterer().fit_transform(x @ x.T),
    "Nystroem": _transformed(lambda: kernel_approximation.Nystroem(n_components=8, random_state=0)),
    "PCA": lambda x: (
        (lambda p: (abs(p.transform(x)), p.explained_variance_, p.mean_))(decomposition.PCA(n_components=2).fit(x))),
    "PCA.inverse_transform": _back(lambda: decomposition.PCA(n_components=3, svd_solver="full", whiten=True)),
    "PCA randomized": lambda x: decomposition.PCA(
        n_components=2, svd_solver="randomized", power_iteration_normalizer="QR",
        random_state=0).fit(x).explained_variance_,
    "LinearDiscriminantAnalysis": _classification(discriminant_analysis.LinearDiscriminantAnalysis),
    "GaussianNB": _classification(naive_bayes.GaussianNB, "theta_", "var_"),
    "Ridge": _regression(lambda: linear_model.Ridge(alpha=0.5, solver="svd"), "coef_", "intercept_"),
    "RidgeCV": _regression(lambda: linear_model.RidgeCV(alphas=(0.1, 1.0, 10.0)), "coef_", "alpha_"),
    "RidgeClassifier": _classification(lambda: linear_model.RidgeClassifier(solver="svd"), "coef_",
                                       scores="decision_function"),
    "RidgeClassifierCV": _classification(lambda: linear_model.RidgeClassifierCV(alphas=(0.1, 1.0)), "coef_",
                                         scores="decision_function"),
    "LogisticRegression": _classification(lambda: linear_model.LogisticRegression(tol=1e-9), "coef_", "intercept_"),
    "PoissonRegressor": _regression(lambda: linear_model.PoissonRegressor(tol=1e-9), "coef_", target="positive"),
    "GaussianMixture": lambda x: (lambda m: (m.means_, m.covariances_, m.predict(x)))(
        mixture.GaussianMixture(2, covariance_type="diag", init_params="random", random_state=3, max_iter=10,
                                tol=1e-12, reg_covar=1e-3).fit(x)),
    "Pipeline": _transformed(lambda: pipeline.make_pipeline(preprocessing.StandardScaler(),
                                                            decomposition.PCA(svd_solver="full"),
                                                            preprocessing.MinMaxScaler())),
    "FunctionTransformer": _transformed(lambda: preprocessing.FunctionTransformer(lambda x: x * 2.0)),
    "TemperatureScaling": lambda x, two: calibration.CalibratedClassifierCV(
        linear_model.RidgeClassifier(solver="svd"), method="temperature", cv=3).fit(x, two).predict_proba(x),
}


def _metric(f: Callable[..., Any], truth: str, guess: str, **options: Any) -> Case:
    def case(**arrays: Any) -> Any:
        return f(arrays[truth], arrays[guess], **options)

    case.takes = (truth, guess)  # type: ignore[attr-defined]
    return case


def _classes(f: Callable[..., Any], **options: Any) -> Case:
    return _metric(f, "classes", "guessed", **options)


def _values(f: Callable[..., Any], **options: Any) -> Case:
    return _metric(f, "y", "close", **options)


def _positives(f: Callable[..., Any], **options: Any) -> Case:
    return _metric(f, "positive", "close_positive", **options)


METRICS: dict[str, Case] = {
    "accuracy_score": _classes(metrics.accuracy_score),
    "accuracy_score weighted": lambda classes, guessed, weights: metrics.accuracy_score(classes, guessed,
                                                                                        sample_weight=weights),
    "balanced_accuracy_score": _classes(metrics.balanced_accuracy_score),
    "brier_score_loss": lambda two, scores: metrics.brier_score_loss(two, scores[:, 0]),
    "cohen_kappa_score": _classes(metrics.cohen_kappa_score),
    "confusion_matrix": _classes(metrics.confusion_matrix),
    "det_curve": lambda two, scores: metrics.det_curve(two, scores[:, 0]),
    "f1_score": _classes(metrics.f1_score, average="macro"),
    "f1_score of labels": _metric(metrics.f1_score, "labels", "guessed_labels", average="weighted"),
    "fbeta_score": _classes(metrics.fbeta_score, beta=0.5, average="micro"),
    "hamming_loss": _classes(metrics.hamming_loss),
    "jaccard_score": _classes(metrics.jaccard_score, average="weighted"),
    "log_loss": _metric(metrics.log_loss, "classes", "scores"),
    "multilabel_confusion_matrix": _metric(metrics.multilabel_confusion_matrix, "labels", "guessed_labels"),
    "precision_score": _classes(metrics.precision_score, average="macro"),
    "precision_recall_curve": lambda two, scores: metrics.precision_recall_curve(two, scores[:, 0]),
    "precision_recall_fscore_support": _classes(metrics.precision_recall_fscore_support),
    "recall_score": _classes(metrics.recall_score, average=None),
    "roc_curve": lambda two, scores: metrics.roc_curve(two, scores[:, 0]),
    "roc_auc_score": lambda two, scores: metrics.roc_auc_score(two, scores[:, 0]),
    "average_precision_score": lambda two, scores: metrics.average_precision_score(two, scores[:, 0]),
    "zero_one_loss": _classes(metrics.zero_one_loss),
    "class_likelihood_ratios": _metric(metrics.class_likelihood_ratios, "two", "guessed_two"),
    "d2_absolute_error_score": _values(metrics.d2_absolute_error_score),
    "d2_brier_score": lambda two, scores: metrics.d2_brier_score(two, scores[:, 0]),
    "d2_log_loss_score": _metric(metrics.d2_log_loss_score, "classes", "scores"),
    "d2_pinball_score": _values(metrics.d2_pinball_score, alpha=0.3),
    "d2_tweedie_score": _positives(metrics.d2_tweedie_score, power=1),
    "explained_variance_score": _values(metrics.explained_variance_score),
    "max_error": _values(metrics.max_error),
    "mean_absolute_error": _values(metrics.mean_absolute_error),
    "mean_absolute_percentage_error": _positives(metrics.mean_absolute_percentage_error),
    "mean_gamma_deviance": _positives(metrics.mean_gamma_deviance),
    "mean_pinball_loss": _values(metrics.mean_pinball_loss, alpha=0.2),
    "mean_poisson_deviance": _positives(metrics.mean_poisson_deviance),
    "mean_squared_error": _values(metrics.mean_squared_error),
    "mean_squared_log_error": _positives(metrics.mean_squared_log_error),
    "mean_tweedie_deviance": _positives(metrics.mean_tweedie_deviance, power=1.5),
    "median_absolute_error": _values(metrics.median_absolute_error),
    "r2_score": _values(metrics.r2_score),
    "root_mean_squared_error": _values(metrics.root_mean_squared_error),
    "root_mean_squared_log_error": _positives(metrics.root_mean_squared_log_error),
    "entropy": lambda classes: metrics.cluster.entropy(classes),
    "pairwise.additive_chi2_kernel": _metric(metrics.pairwise.additive_chi2_kernel, "rows", "columns"),
    "pairwise.chi2_kernel": _metric(metrics.pairwise.chi2_kernel, "rows", "columns"),
    "pairwise.cosine_distances": _metric(metrics.pairwise.cosine_distances, "rows", "columns"),
    "pairwise.cosine_similarity": _metric(metrics.pairwise.cosine_similarity, "rows", "columns"),
    "pairwise.euclidean_distances": _metric(metrics.pairwise.euclidean_distances, "rows", "columns"),
    "pairwise.laplacian_kernel": _metric(metrics.pairwise.laplacian_kernel, "rows", "columns"),
    "pairwise.linear_kernel": _metric(metrics.pairwise.linear_kernel, "rows", "columns"),
    "pairwise.manhattan_distances": _metric(metrics.pairwise.manhattan_distances, "rows", "columns"),
    "pairwise.paired_cosine_distances": _metric(metrics.pairwise.paired_cosine_distances, "rows", "columns"),
    "pairwise.paired_euclidean_distances": _metric(metrics.pairwise.paired_euclidean_distances, "rows", "columns"),
    "pairwise.polynomial_kernel": _metric(metrics.pairwise.polynomial_kernel, "rows", "columns"),
    "pairwise.rbf_kernel": _metric(metrics.pairwise.rbf_kernel, "rows", "columns"),
    "pairwise.sigmoid_kernel": _metric(metrics.pairwise.sigmoid_kernel, "rows", "columns"),
    "pairwise_distances": _metric(metrics.pairwise_distances, "rows", "columns", metric="euclidean"),
}

SELECTORS: dict[str, Case] = {
    "train_test_split": lambda x, y: tuple(model_selection.train_test_split(x, y, random_state=0)),
    "train_test_split stratified": lambda x, two: tuple(
        model_selection.train_test_split(x, two, stratify=two, random_state=0)),
    "cross_val_predict": lambda x, y: model_selection.cross_val_predict(linear_model.Ridge(solver="svd"), x, y, cv=4),
    "GridSearchCV": lambda x, y: (lambda s: (s.best_score_, s.predict(x)))(
        model_selection.GridSearchCV(linear_model.Ridge(solver="svd"), {"alpha": [0.1, 1.0, 10.0]}, cv=3).fit(x, y)),
    "RandomizedSearchCV": lambda x, y: model_selection.RandomizedSearchCV(
        linear_model.Ridge(solver="svd"), {"alpha": [0.1, 1.0, 10.0]}, n_iter=2, random_state=1,
        cv=3).fit(x, y).predict(x),
}


CASES = ESTIMATORS | METRICS | SELECTORS
ON_HOST: frozenset[str] = frozenset()
"""Cases for which scikit-learn asks for arrays of NumPy's itself."""
