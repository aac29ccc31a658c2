# SPDX-License-Identifier: Apache-2.0
set -e
for arch in wse2 wse3; do
  cslc --arch=$arch layout.csl --fabric-dims=9,4 --fabric-offsets=4,1 --params=width:2,height:2,rows:40,columns:30 -o out --memcpy --channels=1
  cs_python run.py --name out
done
