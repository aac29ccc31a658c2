# SPDX-License-Identifier: Apache-2.0
set -e
for arch in wse2 wse3; do
  cslc --arch=$arch src/layout.csl --fabric-dims=12,7 --fabric-offsets=4,1 --params=width:5,height:4,depth:6 -o out --memcpy --channels=2 --width-west-buf=0 --width-east-buf=0
  cs_python run.py --name out --max-ite=80
done
