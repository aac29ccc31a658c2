# SPDX-License-Identifier: Apache-2.0
set -e
for arch in wse2 wse3; do
  cslc --arch=$arch layout.csl --fabric-dims=11,5 --fabric-offsets=4,1 --params=width:4,height:3,size:100 -o out --memcpy --channels=1 --width-west-buf=0 --width-east-buf=0
  cs_python run.py --name out --loop_count 2
done
