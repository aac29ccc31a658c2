# SPDX-License-Identifier: Apache-2.0
"""Stands in for the course's grading service: submissions go nowhere."""


def submit(value):
    return value
