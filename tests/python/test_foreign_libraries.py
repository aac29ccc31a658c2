# SPDX-License-Identifier: Apache-2.0
"""SciPy and scikit-learn compute with arrays of weft, which they know by the array API standard: values as with NumPy's arrays.

They ask for the standard when they are imported, so each library runs in a process of its own. Debian 12's SciPy is too old: tools/test_torch2.
"""

import importlib.metadata
import os
import subprocess
import sys

import pytest

import weft

DEVICES = [n for n in ("cpu", "opencl:0", "cuda:0") if weft.device(n).available]
HEAD = """
import sys
import numpy as np
import weft

rng, device = np.random.default_rng(5), sys.argv[1]
x = rng.standard_normal((67, 5))


def given(a):
    return weft.asarray(a, device=device)


def same(name, f, *arrays):
    want, got = f(*arrays), f(*map(given, arrays))
    if isinstance(want, (float, np.floating)):
        assert abs(float(got) - want) < 1e-6 * (1 + abs(want)), (name, got, want)
        return
    # What SciPy computes by compiled code of its own comes back to the default device.
    assert isinstance(got, weft.NDArray) and got.device.name in (device, "cpu"), (name, type(got))
    np.testing.assert_allclose(got.to("cpu").numpy(), want, rtol=1e-6, atol=1e-8, err_msg=name)
"""
SCIPY = """
from scipy import cluster, fft, integrate, ndimage, signal, special, stats
v = np.abs(x[:, 0])
for name, f in {
    "zscore": stats.zscore, "skew": stats.skew, "kurtosis": stats.kurtosis, "gmean": lambda x: stats.gmean(abs(x)), "sem": stats.sem,
    "pearsonr": lambda x: stats.pearsonr(x[:, 0], x[:, 1]).statistic, "quantile": lambda x: stats.quantile(x[:, 0], 0.3),
    "whiten": cluster.vq.whiten, "linkage": cluster.hierarchy.linkage,
    "fft": lambda x: fft.fft(x, axis=0), "rfft2": fft.rfft2,
    "erf": special.erf, "logsumexp": lambda x: special.logsumexp(x, axis=1), "softmax": lambda x: special.softmax(x, axis=1),
    "gammaln": lambda x: special.gammaln(abs(x)), "ndtri": lambda x: special.ndtri(abs(x) / 10),
    "convolve": lambda x: signal.convolve(x[:, 0], x[:, 1]), "fftconvolve": lambda x: signal.fftconvolve(x, x, axes=0),
    "detrend": lambda x: signal.detrend(x[:, 0]), "hilbert": lambda x: signal.hilbert(x[:, 0]), "savgol": lambda x: signal.savgol_filter(x[:, 0], 7, 2),
    "gaussian": lambda x: ndimage.gaussian_filter(x, 1.0), "sobel": ndimage.sobel,
    "trapezoid": lambda x: integrate.trapezoid(x, axis=0), "cumulative": lambda x: integrate.cumulative_trapezoid(x[:, 0]),
}.items():  # fmt: skip
    same(name, f, x)
"""
SCIKIT_LEARN = """
import sklearn
from sklearn import decomposition, discriminant_analysis, linear_model, metrics, mixture, naive_bayes, pipeline, preprocessing

sklearn.set_config(array_api_dispatch=True)
y = (x[:, 0] + 0.3 * x[:, 1] > 0).astype("int64")
for scaler in ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "Normalizer", "PolynomialFeatures"):
    same(scaler, lambda x: getattr(preprocessing, scaler)().fit_transform(x), x)
same("PCA", lambda x: abs(decomposition.PCA(3, svd_solver="full").fit_transform(x)), x)
same("Ridge", lambda x: linear_model.Ridge(solver="svd").fit(x, x[:, 0]).predict(x), x)
for name, make in {
    "RidgeClassifier": lambda: linear_model.RidgeClassifier(solver="svd"), "LDA": discriminant_analysis.LinearDiscriminantAnalysis,
    "naive Bayes": naive_bayes.GaussianNB,
    "pipeline": lambda: pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.RidgeClassifier(solver="svd")),
}.items():  # fmt: skip
    same(name, lambda x, y: make().fit(x, y).predict(x), x, y)
for name in ("cosine_similarity", "euclidean_distances", "rbf_kernel"):
    same(name, lambda x: getattr(metrics.pairwise, name)(x, x + 1), x)
for name in ("r2_score", "mean_squared_error", "explained_variance_score"):
    same(name, lambda x: getattr(metrics, name)(x[:, 0], x[:, 1]), x)
same("confusion matrix", lambda y: metrics.confusion_matrix(y, 1 - y), y)
same("mixture", lambda x: mixture.GaussianMixture(1, init_params="random", random_state=0).fit(x).means_, x)
"""


def have(package, version):
    try:
        found = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{package} is not installed")
    if tuple(map(int, found.split(".")[:2])) < version:
        pytest.skip(f"{package} {found} does not know the array API standard")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "package, version, program", [("scipy", (1, 16), SCIPY), ("scikit-learn", (1, 8), SCIKIT_LEARN)]
)
def test_values_are_those_of_numpy(package, version, program, device):
    have("scipy", (1, 16))
    have(package, version)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", HEAD + program, device],
        env={**os.environ, "SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
