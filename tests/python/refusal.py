# SPDX-License-Identifier: Apache-2.0
"""A refusal of a known class and slug."""

import pytest


def refused(kind, code, f, *arguments, **keywords):
    with pytest.raises(kind) as caught:
        f(*arguments, **keywords)
    assert caught.value.code == code, caught.value
    return caught.value
