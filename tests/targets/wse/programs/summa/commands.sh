# SPDX-License-Identifier: Apache-2.0
for arch in wse2 wse3; do
cslc ./src/layout.csl --arch=$arch --fabric-dims=11,6 --fabric-offsets=4,1 --params=P:4,Mt:3,Kt:5,Nt:2 --memcpy --channels=1 -o out_$arch || exit 1
cs_python run.py --name out_$arch || exit 1
done
