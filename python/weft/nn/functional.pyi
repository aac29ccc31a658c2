# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py.
import builtins as _builtins
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from weft import NDArray, Tensor, random, _ArrayLike, _bool, _Device, _DType, _Number

def cross_entropy(logits: Tensor, labels: _ArrayLike | Tensor, ignore_index: int | None = None, label_smoothing: Any = 0.0, reduction: str = 'mean', weight: Tensor | None = None) -> Tensor:
    """-log softmax(logits)[label]; logits (n, classes) or (n, classes, ...), labels integers without the class axis."""
def nll_loss(log_probabilities: Any, labels: _ArrayLike | Tensor, ignore_index: int | None = None, reduction: str = 'mean', weight: Tensor | None = None) -> Tensor:
    """-log_probabilities[label]: cross_entropy of what log_softmax already normalised."""
def mse(x: Tensor, y: Tensor) -> Tensor:
    """Mean of squared differences; shapes broadcast."""
def mse_loss(x: Tensor, target: Any, reduction: str = 'mean') -> Tensor:
    """Squared differences of equal shapes."""
def l1_loss(x: Tensor, target: Any, reduction: str = 'mean') -> Tensor:
    """Absolute differences of equal shapes."""
def smooth_l1_loss(x: Tensor, target: Any, reduction: str = 'mean', beta: Any = 1.0) -> Tensor:
    """huber_loss(delta=beta) / beta; l1_loss when beta is 0."""
def huber_loss(x: Tensor, target: Any, reduction: str = 'mean', delta: Any = 1.0) -> Tensor:
    """d * d / 2 where |d| < delta, else delta * (|d| - delta / 2)."""
def binary_cross_entropy(x: Tensor, target: Any, reduction: str = 'mean', weight: Tensor | None = None) -> Tensor:
    """-(t log x + (1 - t) log(1 - x)) of probabilities; logarithms are held at -100, as in PyTorch."""
def binary_cross_entropy_with_logits(x: Tensor, target: Any, reduction: str = 'mean', pos_weight: Any = None, weight: Tensor | None = None) -> Tensor:
    """binary_cross_entropy(sigmoid(x), target), without overflow for large |x|; pos_weight scales the part of t,
    weight, which broadcasts, each loss.
    """
def kl_div(x: Tensor, target: Any, reduction: str = 'mean', log_target: Any = False) -> Tensor:
    """t (log t - x) with x a logarithm of probabilities; "batchmean" is the sum over the rows' number."""
def margin_ranking_loss(x: Tensor, y: Tensor, target: Any, margin: Any = 0.0, reduction: str = 'mean') -> Tensor:
    """max(0, -target (x - y) + margin); target is 1 where x should be larger, else -1."""
def hinge_embedding_loss(x: Tensor, target: Any, margin: Any = 1.0, reduction: str = 'mean') -> Tensor:
    """x where target is 1, max(0, margin - x) where it is -1."""
def cosine_embedding_loss(x: Tensor, y: Tensor, target: Any, margin: Any = 0.0, reduction: str = 'mean') -> Tensor:
    """1 - cos where target is 1, max(0, cos - margin) where it is -1; cos along the last axis."""
def soft_margin_loss(x: Tensor, target: Any, reduction: str = 'mean') -> Tensor:
    """log(1 + exp(-target x))."""
def multi_margin_loss(x: Tensor, target: Any, p: float = 1, margin: Any = 1.0, weight: Tensor | None = None, reduction: str = 'mean') -> Tensor:
    """Mean over the classes i other than the target t of max(0, margin - x[t] + x[i]) ** p; x is (n, classes)."""
def multilabel_margin_loss(x: Tensor, target: Any, reduction: str = 'mean') -> Tensor:
    """Mean of max(0, 1 - x[t] + x[i]) over targets t and the classes i that are no targets."""
def multilabel_soft_margin_loss(x: Tensor, target: Any, weight: Tensor | None = None, reduction: str = 'mean') -> Tensor:
    """Mean over the classes of binary_cross_entropy_with_logits; the classes may have weights."""
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: Any = 1.0, p: float = 2.0, eps: float = 1e-06, swap: Any = False, reduction: str = 'mean') -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), d the p-norm of the difference."""
def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Any = None, margin: Any = 1.0, swap: Any = False, reduction: str = 'mean') -> Tensor:
    """triplet_margin_loss with a distance of one's own, pairwise_distance unless given."""
def poisson_nll_loss(x: Tensor, target: Any, log_input: Any = True, full: Any = False, eps: float = 1e-08, reduction: str = 'mean') -> Tensor:
    """exp(x) - target x, or x - target log(x + eps) without log_input; `full` adds Stirling's term for target > 1."""
def gaussian_nll_loss(x: Tensor, target: Any, var: Any, full: Any = False, eps: float = 1e-06, reduction: str = 'mean') -> Tensor:
    """(log var + (x - target)^2 / var) / 2, var held at eps; `full` adds log(2 pi) / 2."""
def ctc_loss(log_probs: Tensor, targets: Any, input_lengths: Any, target_lengths: Any, blank: Any = 0, reduction: str = 'mean', zero_infinity: Any = False) -> Tensor:
    """-log of the probability of all alignments of a sequence of labels (Graves et al., 2006)."""
def celu(x: Tensor, alpha: Any = 1.0) -> Tensor:
    """x where positive, else alpha (exp(x / alpha) - 1)."""
def glu(x: Tensor, axis: int | Sequence[int] | None = -1, dim: int | None = None) -> Tensor:
    """The first half along an axis times the sigmoid of the second. Raises ArgumentError or ShapeError as split does."""
def hardsigmoid(x: Tensor) -> Tensor:
    """relu6(x + 3) / 6."""
def hardswish(x: Tensor) -> Tensor:
    """x hardsigmoid(x)."""
def hardtanh(x: Tensor, min_val: Any = -1.0, max_val: Any = 1.0) -> Tensor:
    """x held between two numbers."""
def logsigmoid(x: Tensor) -> Tensor:
    """log(1 / (1 + exp(-x))), without overflow."""
def mish(x: Tensor) -> Tensor:
    """x tanh(log(1 + exp(x)))."""
def prelu(x: Tensor, weight: Tensor) -> Tensor:
    """x where positive, else weight times x; weight has one element, or one for each channel (axis 1)."""
def relu6(x: Tensor) -> Tensor:
    """x held between 0 and 6."""
def selu(x: Tensor) -> Tensor:
    """elu with the two constants that keep mean 0 and variance 1 (Klambauer et al., 2017)."""
def softmin(x: Tensor, axis: int | Sequence[int] | None = -1, dim: int | None = None) -> Tensor:
    """softmax(-x); `dim` is PyTorch's name of the axis."""
def softsign(x: Tensor) -> Tensor:
    """x / (1 + |x|)."""
def hardshrink(x: Tensor, lambd: Any = 0.5) -> Tensor:
    """x where |x| > lambd, else 0."""
def softshrink(x: Tensor, lambd: Any = 0.5) -> Tensor:
    """x moved towards 0 by lambd, 0 where |x| <= lambd."""
def tanhshrink(x: Tensor) -> Tensor:
    """x - tanh(x)."""
def threshold(x: Tensor, threshold: Any, value: _Number) -> Tensor:
    """x where x > threshold, else value."""
def rrelu(x: Tensor, lower: float = 0.125, upper: float = 0.3333333333333333, training: _bool = False, key: random.Key | None = None) -> Tensor:
    """x where positive, else x times a random number in [lower, upper) while training, their mean otherwise."""
def gumbel_softmax(logits: Tensor, tau: Any = 1.0, hard: Any = False, dim: int = -1, key: random.Key | None = None) -> Tensor:
    """softmax((logits + Gumbel noise) / tau); `hard` gives one-hot rows that have the gradient of the soft ones."""
def conv1d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | tuple[int, ...] | None = 1, padding: int | str | tuple[int, ...] | None = 0, dilation: int | tuple[int, ...] = 1, groups: int = 1) -> Tensor:
    """x (n, c, length) with weight (o, c / groups, k)."""
def conv2d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | tuple[int, ...] | None = 1, padding: int | str | tuple[int, ...] | None = 0, dilation: int | tuple[int, ...] = 1, groups: int = 1) -> Tensor:
    """x (n, c, h, w) with weight (o, c / groups, kh, kw) and bias (o,). Options: a number or (rows, columns); padding also "same" or "valid"."""
def conv3d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | tuple[int, ...] | None = 1, padding: int | str | tuple[int, ...] | None = 0, dilation: int | tuple[int, ...] = 1, groups: int = 1) -> Tensor:
    """x (n, c, d, h, w) with weight (o, c / groups, kd, kh, kw): slices convolved as images, kd of them added up."""
def conv_transpose1d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | tuple[int, ...] | None = 1, padding: int | str | tuple[int, ...] | None = 0, output_padding: int | tuple[int, ...] = 0, groups: int = 1, dilation: int | tuple[int, ...] = 1) -> Tensor:
    """The transpose of conv1d: x (n, c, length) with weight (c, o / groups, k)."""
def conv_transpose2d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | tuple[int, ...] | None = 1, padding: int | str | tuple[int, ...] | None = 0, output_padding: int | tuple[int, ...] = 0, groups: int = 1, dilation: int | tuple[int, ...] = 1) -> Tensor:
    """The transpose of conv2d: x (n, c, h, w) with weight (c, o / groups, kh, kw) and bias (o,)."""
def conv_transpose3d(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | tuple[int, ...] | None = 1, padding: int | str | tuple[int, ...] | None = 0, output_padding: int | tuple[int, ...] = 0, groups: int = 1, dilation: int | tuple[int, ...] = 1) -> Tensor:
    """The transpose of conv3d: x (n, c, d, h, w) with weight (c, o / groups, kd, kh, kw)."""
def cosine_similarity(x: Tensor, y: Tensor, axis: int | Sequence[int] | None = 1, eps: float = 1e-08, dim: int | None = None) -> Tensor:
    """The cosine of the angle between vectors along an axis; `dim` is PyTorch's name of the axis."""
def pairwise_distance(x: Tensor, y: Tensor, p: float = 2.0, eps: float = 1e-06, keepdim: Any = False) -> Tensor:
    """The p-norm of x - y + eps along the last axis."""
def pdist(x: Tensor, p: float = 2.0) -> Tensor:
    """The p-norms of the differences of all pairs of rows of x (n, m), those of row 0 first: (n (n - 1) / 2,)."""
def bilinear(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x[..., i] weight[o, i, j] y[..., j], summed over i and j, plus bias[o]."""
def dropout(x: Tensor, p: float = 0.5, training: _bool = True, key: random.Key | None = None) -> Tensor:
    """Zeroes elements with probability p and scales the others by 1 / (1 - p)."""
def dropout1d(x: Tensor, p: float = 0.5, training: _bool = True, key: random.Key | None = None) -> Tensor:
    """Zeroes whole channels of (n, c, ...) with probability p and scales the others by 1 / (1 - p)."""
def dropout2d(x: Tensor, p: float = 0.5, training: _bool = True, key: random.Key | None = None) -> Tensor:
    """Zeroes whole channels of (n, c, ...) with probability p and scales the others by 1 / (1 - p)."""
def dropout3d(x: Tensor, p: float = 0.5, training: _bool = True, key: random.Key | None = None) -> Tensor:
    """Zeroes whole channels of (n, c, ...) with probability p and scales the others by 1 / (1 - p)."""
def alpha_dropout(x: Tensor, p: float = 0.5, training: _bool = False, key: random.Key | None = None) -> Tensor:
    """Sets elements to the lowest value of selu, and scales and shifts so that mean and variance stay."""
def feature_alpha_dropout(x: Tensor, p: float = 0.5, training: _bool = False, key: random.Key | None = None) -> Tensor:
    """alpha_dropout of whole channels of (n, c, ...)."""
def embedding(weight: Tensor, index: Tensor | Tensor, padding_idx: int | None = None, max_norm: float | None = None, norm_type: Any = 2.0, scale_grad_by_freq: Any = False, sparse: Any = False) -> Tensor:
    """Rows of weight; the row padding_idx gets no gradient. Raises IndexError for rows that are not there, on
    cards at the next copy to the host or synchronize() of the device.
    """
def embedding_bag(index: Tensor | Tensor, weight: Tensor, offsets: Any = None, max_norm: float | None = None, norm_type: Any = 2.0, scale_grad_by_freq: Any = False, mode: str = 'mean', sparse: Any = False, per_sample_weights: Any = None, include_last_offset: Any = False, padding_idx: int | None = None) -> Tensor:
    """Sums, means or maxima of the rows of weight in each bag."""
def pixel_shuffle(x: Tensor, upscale_factor: Any) -> Tensor:
    """(n, c r r, h, w) to (n, c, h r, w r): r r channels become the pixels of a square."""
def pixel_unshuffle(x: Tensor, downscale_factor: Any) -> Tensor:
    """(n, c, h r, w r) to (n, c r r, h, w): the pixels of a square become r r channels."""
def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """The channels (axis 1) of `groups` groups dealt out in turn. Raises ShapeError when they do not divide."""
def unfold(x: Tensor, kernel_size: int | tuple[int, ...], dilation: int | tuple[int, ...] = 1, padding: int | str | tuple[int, ...] | None = 0, stride: int | tuple[int, ...] | None = 1) -> Tensor:
    """(n, c, h, w) to (n, c kh kw, windows): what a convolution's windows see, zeros outside."""
def fold(x: Tensor, output_size: Any, kernel_size: int | tuple[int, ...], dilation: int | tuple[int, ...] = 1, padding: int | str | tuple[int, ...] | None = 0, stride: int | tuple[int, ...] | None = 1) -> Tensor:
    """(n, c kh kw, windows) to (n, c, *output_size): overlapping windows add up; the transpose of unfold."""
def max_pool1d(x: Tensor, kernel: int | tuple[int, ...], stride: int | tuple[int, ...] | None = None, padding: int | str | tuple[int, ...] | None = 0, dilation: int | tuple[int, ...] = 1, ceil_mode: _bool = False) -> Tensor:
    """Largest value of each window of (n, c, length) or (c, length); a border of `padding` never wins."""
def max_pool2d(x: Tensor, kernel: int | tuple[int, ...], stride: int | tuple[int, ...] | None = None, padding: int | str | tuple[int, ...] | None = 0, dilation: int | tuple[int, ...] = 1, ceil_mode: _bool = False) -> Tensor:
    """Largest value of each window of (n, c, h, w) or (c, h, w); a border of `padding` never wins."""
def max_pool3d(x: Tensor, kernel: int | tuple[int, ...], stride: int | tuple[int, ...] | None = None, padding: int | str | tuple[int, ...] | None = 0, dilation: int | tuple[int, ...] = 1, ceil_mode: _bool = False) -> Tensor:
    """Largest value of each window of (n, c, d, h, w) or (c, d, h, w); a border of `padding` never wins."""
def avg_pool1d(x: Tensor, kernel: int | tuple[int, ...], stride: int | tuple[int, ...] | None = None, padding: int | str | tuple[int, ...] | None = 0, ceil_mode: _bool = False, count_include_pad: _bool = True) -> Tensor:
    """Mean of each window of (n, c, length) or (c, length); a border counts as zeros, or not at all."""
def avg_pool2d(x: Tensor, kernel: int | tuple[int, ...], stride: int | tuple[int, ...] | None = None, padding: int | str | tuple[int, ...] | None = 0, ceil_mode: _bool = False, count_include_pad: _bool = True, divisor_override: int | None = None) -> Tensor:
    """Mean of each window of (n, c, h, w) or (c, h, w); a border counts as zeros, or not at all."""
def avg_pool3d(x: Tensor, kernel: int | tuple[int, ...], stride: int | tuple[int, ...] | None = None, padding: int | str | tuple[int, ...] | None = 0, ceil_mode: _bool = False, count_include_pad: _bool = True, divisor_override: int | None = None) -> Tensor:
    """Mean of each window of (n, c, d, h, w) or (c, d, h, w); a border counts as zeros, or not at all."""
def adaptive_avg_pool1d(x: Tensor, output_size: Any) -> Tensor:
    """Means of output_size windows that together cover the axis; they overlap where it does not divide."""
def adaptive_avg_pool2d(x: Tensor, output_size: Any) -> Tensor:
    """Means of (n, c, h, w) to (n, c, *output_size); None keeps an axis. Raises ShapeError."""
def adaptive_avg_pool3d(x: Tensor, output_size: Any) -> Tensor:
    """Means of (n, c, d, h, w) to (n, c, *output_size); None keeps an axis. Raises ShapeError."""
def adaptive_max_pool1d(x: Tensor, output_size: Any) -> Tensor:
    """The largest of output_size windows that together cover the axis."""
def adaptive_max_pool2d(x: Tensor, output_size: Any) -> Tensor:
    """The largest of each window: (n, c, h, w) to (n, c, *output_size); None keeps an axis."""
def adaptive_max_pool3d(x: Tensor, output_size: Any) -> Tensor:
    """The largest of each window: (n, c, d, h, w) to (n, c, *output_size); None keeps an axis."""
def lp_pool1d(x: Tensor, norm_type: Any, kernel: int | tuple[int, ...], stride: int | tuple[int, ...] | None = None, ceil_mode: _bool = False) -> Tensor:
    """(sum of x ** norm_type) ** (1 / norm_type) of each window; of one over the edge, the mean times the whole window."""
def lp_pool2d(x: Tensor, norm_type: Any, kernel: int | tuple[int, ...], stride: int | tuple[int, ...] | None = None, ceil_mode: _bool = False) -> Tensor:
    """(sum of x ** norm_type) ** (1 / norm_type) of each window; of one over the edge, the mean times the whole window."""
def lp_pool3d(x: Tensor, norm_type: Any, kernel: int | tuple[int, ...], stride: int | tuple[int, ...] | None = None, ceil_mode: _bool = False) -> Tensor:
    """(sum of x ** norm_type) ** (1 / norm_type) of each window; of one over the edge, the mean times the whole window."""
def affine_grid(theta: Any, size: Any, align_corners: Any = False) -> Tensor:
    """Places (n, h, w, 2) for grid_sample from matrices theta (n, 2, 3) and a size (n, c, h, w); (n, 3, 4) and five extents for volumes."""
def grid_sample(x: Tensor, grid: Any, mode: str = 'bilinear', padding_mode: str = 'zeros', align_corners: Any = False) -> Tensor:
    """x (n, c, h, w) at places grid (n, i, j, 2), (column, row) from -1 to 1; volumes (n, c, d, h, w) at (n, i, j, k, 3)."""
def max_pool1d_with_indices(x: Tensor, kernel: int | tuple[int, ...], stride: int | tuple[int, ...] | None = None, padding: int | str | tuple[int, ...] | None = 0, dilation: int | tuple[int, ...] = 1, ceil_mode: _bool = False) -> Tensor:
    """(max_pool1d, the position of each largest element among those of its channel, int64)."""
def max_pool2d_with_indices(x: Tensor, kernel: int | tuple[int, ...], stride: int | tuple[int, ...] | None = None, padding: int | str | tuple[int, ...] | None = 0, dilation: int | tuple[int, ...] = 1, ceil_mode: _bool = False) -> Tensor:
    """(max_pool2d, the position of each largest element among those of its channel, int64)."""
def max_pool3d_with_indices(x: Tensor, kernel: int | tuple[int, ...], stride: int | tuple[int, ...] | None = None, padding: int | str | tuple[int, ...] | None = 0, dilation: int | tuple[int, ...] = 1, ceil_mode: _bool = False) -> Tensor:
    """(max_pool3d, the position of each largest element among those of its channel, int64)."""
def adaptive_max_pool1d_with_indices(x: Tensor, output_size: Any) -> Tensor:
    """(adaptive_max_pool1d, the position of each largest element among those of its channel, int64)."""
def adaptive_max_pool2d_with_indices(x: Tensor, output_size: Any) -> Tensor:
    """(adaptive_max_pool2d, the position of each largest element among those of its channel, int64)."""
def adaptive_max_pool3d_with_indices(x: Tensor, output_size: Any) -> Tensor:
    """(adaptive_max_pool3d, the position of each largest element among those of its channel, int64)."""
def max_unpool1d(x: Tensor, indices: _ArrayLike, kernel_size: int | tuple[int, ...], stride: int | tuple[int, ...] | None = None, padding: int | str | tuple[int, ...] | None = 0, output_size: Any = None) -> Tensor:
    """Values go back to where max_pool_with_indices found them, zeros elsewhere. Has gradients."""
def max_unpool2d(x: Tensor, indices: _ArrayLike, kernel_size: int | tuple[int, ...], stride: int | tuple[int, ...] | None = None, padding: int | str | tuple[int, ...] | None = 0, output_size: Any = None) -> Tensor:
    """Values go back to where max_pool_with_indices found them, zeros elsewhere. Has gradients."""
def max_unpool3d(x: Tensor, indices: _ArrayLike, kernel_size: int | tuple[int, ...], stride: int | tuple[int, ...] | None = None, padding: int | str | tuple[int, ...] | None = 0, output_size: Any = None) -> Tensor:
    """Values go back to where max_pool_with_indices found them, zeros elsewhere. Has gradients."""
def fractional_max_pool2d(x: Tensor, kernel_size: int | tuple[int, ...], output_size: Any = None, output_ratio: Any = None, return_indices: Any = False, _random_samples: Any = None, key: random.Key | None = None) -> Tensor:
    """The largest of windows that begin at random places, output_size (or output_ratio times the extents) of them."""
def fractional_max_pool2d_with_indices(x: Tensor, kernel_size: int | tuple[int, ...], output_size: Any = None, output_ratio: Any = None, return_indices: Any = False, _random_samples: Any = None, key: random.Key | None = None) -> Tensor:
    """The largest of windows that begin at random places, output_size (or output_ratio times the extents) of them."""
def fractional_max_pool3d(x: Tensor, kernel_size: int | tuple[int, ...], output_size: Any = None, output_ratio: Any = None, return_indices: Any = False, _random_samples: Any = None, key: random.Key | None = None) -> Tensor:
    """The largest of windows that begin at random places, output_size (or output_ratio times the extents) of them."""
def fractional_max_pool3d_with_indices(x: Tensor, kernel_size: int | tuple[int, ...], output_size: Any = None, output_ratio: Any = None, return_indices: Any = False, _random_samples: Any = None, key: random.Key | None = None) -> Tensor:
    """The largest of windows that begin at random places, output_size (or output_ratio times the extents) of them."""
def celu_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The elements of x become those of celu(x, ...); gives x."""
def elu_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The elements of x become those of elu(x, ...); gives x."""
def hardtanh_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The elements of x become those of hardtanh(x, ...); gives x."""
def leaky_relu_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The elements of x become those of leaky_relu(x, ...); gives x."""
def relu_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The elements of x become those of relu(x, ...); gives x."""
def rrelu_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The elements of x become those of rrelu(x, ...); gives x."""
def selu_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The elements of x become those of selu(x, ...); gives x."""
def threshold_(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The elements of x become those of threshold(x, ...); gives x."""
def conv_tbc(x: Tensor, weight: Tensor, bias: _bool, pad: Any = 0) -> Tensor:
    """A convolution of (time, batch, channels) with weight (taps, channels, results)."""
def multi_head_attention_forward(query: Any, key: random.Key | None, value: _Number, embed_dim_to_check: Any, num_heads: Any, in_proj_weight: Any, in_proj_bias: Any, bias_k: Any, bias_v: Any, add_zero_attn: Any, dropout_p: Any, out_proj_weight: Any, out_proj_bias: Any, training: _bool = True, key_padding_mask: Any = None, need_weights: Any = True, attn_mask: Any = None, average_attn_weights: Any = True) -> Tensor:
    """(output, weights) of nn.MultiheadAttention with given weights in PyTorch's layout: queries (t, n, e), in_proj_weight (3 e, e),
    out_proj_weight (e, e). bias_k, bias_v and add_zero_attn are refused; dropout is left to the module.
    """
def native_channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """As channel_shuffle."""
def upsample(x: Tensor, size: Any = None, scale_factor: Any = None, mode: str = 'nearest', align_corners: Any = None) -> Tensor:
    """As interpolate."""
def upsample_bilinear(x: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate between elements, corners on corners."""
def upsample_nearest(x: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate by the nearest element."""
def instance_norm(x: Tensor, running_mean: Any = None, running_var: Any = None, weight: Tensor | None = None, bias: _bool | None = None, use_input_stats: Any = True, momentum: float = 0.1, eps: float = 1e-05) -> Tensor:
    """group_norm with each channel a group of its own; by the running statistics unless use_input_stats, which move by `momentum` else."""
def local_response_norm(x: Tensor, size: Any, alpha: Any = 0.0001, beta: Any = 0.75, k: float = 1.0) -> Tensor:
    """x over (k + alpha * mean of the squares of `size` neighbouring channels) ** beta; zeros beyond the edges."""
def batch_norm(x: Tensor, running_mean: Any, running_var: Any, weight: Tensor | None = None, bias: _bool | None = None, training: _bool = False, eps: float = 1e-05, momentum: float = 0.1) -> Tensor:
    """(n, c, ...) over the batch when training, which moves the running statistics by `momentum`, else by these."""
def group_norm(x: Tensor, num_groups: Any, weight: Tensor | None = None, bias: _bool | None = None, eps: float = 1e-05) -> Tensor:
    """x (n, c, ...) with mean 0 and variance 1 over each group of neighbouring channels and all that follows, then
    times weight and plus bias, one number for each channel. Raises ShapeError when the groups do not divide c.
    """
def interpolate(x: Tensor, size: Any = None, scale_factor: Any = None, mode: str = 'nearest', align_corners: Any = False, recompute_scale_factor: Any = None, antialias: Any = False) -> Tensor:
    """(n, c, ...) with the spatial axes enlarged or shrunk to `size`, or by `scale_factor`."""
def layer_norm(x: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: _bool | None = None, eps: float = 1e-05) -> Tensor:
    """Mean 0 and variance 1 over the last axes, whose extents are normalized_shape, then times weight plus bias."""
def rms_norm(x: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """x over the root of its mean square along the last axes, whose extents are normalized_shape, then times weight."""
def pad(x: Tensor, widths: Sequence[int], mode: str = 'constant', value: _Number = 0.0) -> Tensor:
    """A border as PyTorch counts it: (left, right, top, bottom, ...) from the last axis backwards."""
def gelu(x: Tensor, approximate: Any = 'none') -> Tensor:
    """x times the normal distribution function of x; approximate="tanh" takes the tanh formula."""
def silu(x: Tensor) -> Tensor:
    """x sigmoid(x)."""
def leaky_relu(x: Tensor, slope: float = 0.01, negative_slope: Any = None) -> Tensor:
    """x where positive, else slope times x; `negative_slope` is PyTorch's name of it."""
def elu(x: Tensor, alpha: Any = 1.0) -> Tensor:
    """x where positive, else alpha (exp(x) - 1)."""
def softplus(x: Tensor, beta: Any = 1.0, threshold: Any = 20.0) -> Tensor:
    """log(1 + exp(beta x)) / beta, without overflow; x itself where beta x is above the threshold."""
def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
def tanh(x: Tensor) -> Tensor:
    """The hyperbolic tangent."""
def softmax(x: Tensor, axis: int = -1, dim: int | None = None) -> Tensor:
    """exp(x) / sum(exp(x)) along an axis; `dim` is PyTorch's name of it."""
def log_softmax(x: Tensor, axis: int = -1, dim: int | None = None) -> Tensor:
    """x - log(sum(exp(x))) along an axis; `dim` is PyTorch's name of it."""
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x weight + bias; weight is (in, out), as in weft.nn.Linear."""
def one_hot(index: Tensor | Tensor, num_classes: Any = -1) -> Tensor:
    """An array of int64 with a new last axis, 1 at each index; -1 classes are the largest index and one more."""
def normalize(x: Tensor, p: float = 2.0, axis: int | Sequence[int] | None = 1, eps: float = 1e-12, dim: int | None = None) -> Tensor:
    """x over its p-norm along an axis, the norm held at eps; `dim` is PyTorch's name of the axis."""
def attention(q: Tensor, k: int, v: Tensor, causal: _bool = False, *, window: Any = None, mask: Any = None, padding: int | str | tuple[int, ...] | None = None, lengths: Any = None, dropout: float = 0.0, scale: Any = None, key: random.Key | None = None) -> Tensor:
    """softmax(scale q k' + mask) v over the last two axes; q (..., n, width), k (..., m, width), v (..., m, value width)."""
def scaled_dot_product_attention(q: Tensor, k: int, v: Tensor, attn_mask: Any = None, dropout_p: Any = 0.0, is_causal: Any = False, scale: Any = None, enable_gqa: Any = False) -> Tensor:
    """softmax(scale q k' + mask) v as in PyTorch; attn_mask is true where attention is allowed, or numbers to add."""
def dequantize_weight(weight: Tensor, scales: Any, zeros: Any = None, bits: Any = 8) -> Tensor:
    """The float32 weight (inputs, outputs) that a quantized one stands for: (weight - zeros) * scales by groups."""
def grouped_linear(x: Tensor, weights: Any, counts: Any, bias: _bool | None = None) -> Tensor:
    """Products of groups of rows with weights of their own: the first counts[0] rows of x (rows, inputs) with
    weights[0], the next counts[1] with weights[1], and so on (the experts of a mixture, after sorting by expert).
    """
def quantize_weight(weight: Tensor, bits: Any = 8, group_size: Any = 32) -> Tensor:
    """(packed, scales) of a float weight (inputs, outputs): each group of `group_size` inputs of an output is divided by
    its scale, largest magnitude / 127 (/ 7 for 4 bits), and rounded to the nearest even. A group of zeros has scale 0.
    """
def quantized_linear(x: Tensor, weight: Tensor, scales: Any, zeros: Any = None, bias: _bool | None = None, bits: Any = 8) -> Tensor:
    """x (..., inputs) @ the weight that `weight`, `scales` and `zeros` stand for, + bias: (..., outputs), of x's type."""
def scaled_mm(a: Any, b: Any, scale_a: Any = None, scale_b: Any = None, bias: _bool | None = None, dtype: _DType | None = 'bfloat16') -> Tensor:
    """(a @ b) * scale_a * scale_b + bias of float8 matrices (m, k) and (k, n): sums in float32, rounded once to `dtype`."""
def relu(x: Tensor, /) -> Tensor:
    """x where positive, else 0."""
