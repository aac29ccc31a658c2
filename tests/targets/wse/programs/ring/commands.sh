# SPDX-License-Identifier: Apache-2.0
set -e
for a in wse2 wse3; do for s in 1.4 2.10; do for P in 2 5; do cslc layout.csl --arch=$a --sdk-version=$s --fabric-dims=12,3 --fabric-offsets=4,1 --params=P:$P --params=n:7 -o out --memcpy --channels=1; cs_python run.py --name out; done; done; done
