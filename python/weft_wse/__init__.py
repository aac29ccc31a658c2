# SPDX-License-Identifier: Apache-2.0
"""The fabric simulator's library and its compiler command, apart from `weft`: a run of `cslc` loads no array library."""
