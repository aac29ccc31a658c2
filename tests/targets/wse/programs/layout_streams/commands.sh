# SPDX-License-Identifier: Apache-2.0
set -e
cs_python run.py --arch=wse2
cs_python run.py --arch=wse3
