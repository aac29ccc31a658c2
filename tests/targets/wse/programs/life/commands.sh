# SPDX-License-Identifier: Apache-2.0
for arch in wse2 wse3; do
cslc ./layout.csl --arch=$arch --fabric-dims=16,9 --fabric-offsets=4,1 --params=width:9,height:7 --memcpy --channels=1 -o out_$arch || exit 1
cs_python run.py --name out_$arch || exit 1
done
