# SPDX-License-Identifier: Apache-2.0
set -e
for arch in wse2 wse3; do
  cslc layout.csl --arch=$arch --fabric-dims=12,7 --fabric-offsets=4,1 --params=W:5,H:4,n:3 -o out --memcpy --channels=2
  cs_python run.py --name out
done
