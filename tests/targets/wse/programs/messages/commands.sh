# SPDX-License-Identifier: Apache-2.0
set -e
cslc --arch=wse3 layout.csl --fabric-dims=10,5 --fabric-offsets=4,1 --params=W:3,n:3 -o out --memcpy --channels=1
cs_python run.py --name out
