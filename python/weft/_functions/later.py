# SPDX-License-Identifier: Apache-2.0
"""Names that are loaded on first use, so that importing weft stays quick: public module -> module here -> its names."""

from __future__ import annotations

import sys

from .._boundary import import_later, public, publish_class

_TABLE = {
    "weft": {
        "arrays": """
            apply_over_axes array_equiv asanyarray asarray_chkfinite asfarray ascontiguousarray asfortranarray copyto
            diag_indices_from frombuffer fromfile fromfunction fromiter fromstring iscomplexobj isfortran isrealobj isscalar
            iterable mask_indices may_share_memory nancumprod packbits putmask real_if_close require row_stack shares_memory
            sort_complex spacing tril_indices_from triu_indices_from unpackbits bitwise_count
        """,
        "grids": "c_ frompyfunc index_exp mgrid ndenumerate ndindex ogrid r_ s_ vectorize",
        "text": """
            array2string array_repr array_str base_repr binary_repr errstate format_float_positional format_float_scientific
            genfromtxt get_printoptions geterr loadtxt printoptions savetxt savez_compressed set_printoptions seterr typename
        """,
        "types": """
            bool_ byte cdouble cfloat common_type complex_ complexfloating csingle double find_common_type float float_
            floating generic get_default_dtype half inexact int int_ intc integer intp is_signed issctype issubdtype long
            longlong min_scalar_type mintypecode number promote_types set_default_dtype short signedinteger single
            singlecomplex ubyte uint uintc uintp ulonglong unsignedinteger ushort
        """,
        "constants": "Inf Infinity NAN NINF NZERO NaN PINF PZERO euler_gamma infty True_ False_ lib ndarray Generator Size "
        "default_generator strided preserve_format contiguous_format channels_last channels_last_3d",
        "contractions": "einsum_path matvec vecmat",
        "rarer": "binomial get_default_device i0 igamma igammac polygamma rms_norm set_default_device",
        "polynomials": "poly1d polyadd polyder polydiv polyint polymul polysub",
        "histograms": "histogram_bin_edges histogramdd",
        "running": "cummax cummin mode renorm",
        "scatters": """
            as_strided as_strided_scatter diagonal_scatter index_copy index_put index_reduce masked_scatter scatter_reduce
            segment_reduce select_scatter slice_scatter
        """,
        "factors": """
            adjoint chain_matmul cholesky cholesky_inverse cholesky_solve det frobenius_norm geqrf inverse lobpcg lu
            lu_solve lu_unpack matrix_exp matrix_rank mvlgamma nuclear_norm orgqr ormqr pca_lowrank pinverse qr
            svd_lowrank triangular_solve norm_except_dim
        """,
        "complexes": """
            complex conj_physical is_conj is_neg polar resolve_conj resolve_neg view_as_complex view_as_real
        """,
        "spectra": "bartlett_window blackman_window hamming_window hann_window istft kaiser_window stft",
        "layers": """
            adaptive_avg_pool1d adaptive_max_pool1d affine_grid_generator alpha_dropout avg_pool1d batch_norm bilinear
            binary_cross_entropy_with_logits celu channel_shuffle constant_pad_nd conv1d conv2d conv3d conv_tbc
            conv_transpose1d conv_transpose2d conv_transpose3d convolution cosine_embedding_loss cosine_similarity ctc_loss
            dropout embedding embedding_bag feature_alpha_dropout feature_dropout grid_sampler group_norm gru_cell hardshrink
            hinge_embedding_loss instance_norm kl_div lstm_cell margin_ranking_loss max_pool1d
            max_pool1d_with_indices max_pool2d max_pool3d pairwise_distance pdist pixel_shuffle pixel_unshuffle
            poisson_nll_loss prelu rnn_relu_cell rnn_tanh_cell rrelu selu threshold triplet_margin_loss
        """,
        "states": """
            are_deterministic_algorithms_enabled detach empty_strided fork_rng get_device get_float32_matmul_precision
            get_num_interop_threads get_num_threads get_rng_state inference_mode initial_seed is_anomaly_enabled is_distributed
            is_grad_enabled is_inference is_inference_mode_enabled is_nonzero is_same_size is_storage randint_like
            range rsub scalar_tensor seed set_float32_matmul_precision set_grad_enabled set_num_interop_threads set_num_threads
            set_rng_state unsafe_chunk unsafe_split unsafe_split_with_sizes use_deterministic_algorithms
        """,
    },
    "weft.linalg": {
        "factors": """
            LinAlgError cholesky_ex householder_product inv_ex lu lu_factor lu_factor_ex lu_solve solve_ex
            vander
        """,
    },
    "weft.fft": {"planes": "hfft2 hfftn ihfft2 ihfftn"},
    "weft.random": {
        "samplers": """
            Generator PCG64 Philox RandomState SeedSequence bytes f fork_rng get_rng_state get_state hypergeometric initial_seed
            logseries manual_seed multivariate_hypergeometric negative_binomial noncentral_chisquare noncentral_f pareto
            permuted power rand randint randn random random_integers random_sample ranf sample set_rng_state set_state
            standard_cauchy standard_exponential standard_gamma standard_t triangular vonmises wald weibull zipf default_generator
        """,
    },
}
# Under transforms they run on arrays as they are: their loops and choices depend on values.
_WHOLE = frozenset(
    "mode lobpcg segment_reduce histogramdd lu lu_factor lu_factor_ex lu_solve".split()
)
# Names of the language: `from weft import *` leaves them alone.
_UNSTARRED = frozenset("lib float int range complex ndarray".split())


def names(owner):
    """The names that a public module gets on first use, and the module of weft._functions of each."""
    return {n: home for home, text in _TABLE.get(owner, {}).items() for n in text.split()}


_HOMES = {owner: names(owner) for owner in _TABLE}


def starred(owner):
    """Those for the module's __all__."""
    return [n for n in _HOMES[owner] if n not in _UNSTARRED]


def _in_place(name):
    """x.exp_() as a function: weft.exp_(x)."""
    from .._methods.inplace import IN_PLACE

    if name not in IN_PLACE:
        return None

    def call(input, *args, **kwargs):
        return getattr(input, name)(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"The method {name} of an array or a tensor, which changes and is returned."
    return call


def found(owner, name):
    """The value of a name of the table, which the public module holds from then on; None for other names."""
    home = _HOMES[owner].get(name)
    if home is not None:
        value = getattr(import_later(f"weft._functions.{home}"), name)
    elif owner == "weft" and name.endswith("_"):
        value = _in_place(name)
    else:
        value = None
    if value is None:
        return None
    if isinstance(value, type) and value.__module__.startswith("weft._functions"):
        publish_class(value)
    if type(value) is type(found):
        from . import published, sized

        value = public(value) if home is None else published(value)
        value = sized(value) if owner == "weft.random" else value
        if name in _WHOLE:
            from .._dispatch import _wrapper

            value = _wrapper(name, value, False)
        value.__weft_transform__ = True
        value.__module__ = owner
    setattr(sys.modules[owner], name, value)
    return value
