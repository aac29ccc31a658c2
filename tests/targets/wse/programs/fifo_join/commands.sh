# SPDX-License-Identifier: Apache-2.0
set -e
for a in wse2 wse3; do cslc layout.csl --arch=$a --sdk-version=2.10 --fabric-dims=8,4 --fabric-offsets=4,1 --params=size:50,A_ID:4,B_ID:5,O_ID:6 -o out --memcpy --channels=2; cs_python run.py --name out; done
