# SPDX-License-Identifier: Apache-2.0
set -e
for a in wse2 wse3; do
cslc --arch=$a ./layout.csl --fabric-dims=10,5 --fabric-offsets=4,1 --params=P:3,Mt:4,Kt:5,Nt:3 -o out --memcpy --channels 1
cs_python run.py --name out
done
