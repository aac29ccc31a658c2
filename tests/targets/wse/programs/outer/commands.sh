# SPDX-License-Identifier: Apache-2.0
set -e
for arch in wse2 wse3; do
  cslc --arch=$arch layout.csl --fabric-dims=12,6 --fabric-offsets=4,1 --params=width:5,height:4,n:3 -o out --memcpy --channels=2
  cs_python run.py --name out
done
