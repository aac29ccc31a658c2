# SPDX-License-Identifier: Apache-2.0
set -e
for arch in wse2 wse3; do
  cslc --arch=$arch layout.csl --fabric-dims=11,5 --fabric-offsets=4,1 --params=width:4,height:3,NX:5,NY:4 -o out --memcpy --channels=1
  cs_python run.py --name out
done
