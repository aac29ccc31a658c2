# SPDX-License-Identifier: Apache-2.0
for arch in wse2 wse3; do
cslc layout.csl --arch=$arch --fabric-dims=12,7 --fabric-offsets=4,1 --params=P:5,Nt:4 -o out_$arch --memcpy --channels=1 --width-west-buf=0 --width-east-buf=0 || exit 1
cs_python run.py --name out_$arch || exit 1
done
