# SPDX-License-Identifier: Apache-2.0
"""Random programs compared on every target, and their reduction to small ones."""
