# SPDX-License-Identifier: Apache-2.0
set -e
for arch in wse2 wse3; do
  for size in width:4,height:3 width:1,height:1 width:2,height:1; do
    cslc --arch=$arch layout.csl --fabric-dims=11,5 --fabric-offsets=4,1 --params=$size,m:5,n:7 -o out --memcpy --channels=1
    cs_python run.py --name out
  done
done
