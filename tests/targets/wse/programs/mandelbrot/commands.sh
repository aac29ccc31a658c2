# SPDX-License-Identifier: Apache-2.0
set -e
cslc --arch=wse3 --sdk-version=2.10 layout.csl --fabric-dims=11,6 --fabric-offsets=4,1 --params=width:4,height:4,side:8,most:40 -o out --memcpy --channels=1
cs_python run.py --name out
