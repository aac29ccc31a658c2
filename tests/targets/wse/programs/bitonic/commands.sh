# SPDX-License-Identifier: Apache-2.0
set -e
for a in wse2 wse3; do cslc layout.csl --arch=$a --fabric-dims=15,3 --fabric-offsets=4,1 --params=logP:3,n:9 -o out --memcpy --channels=1; cs_python run.py --name out; done
