# SPDX-License-Identifier: Apache-2.0
set -e
for arch in wse2 wse3; do
  cslc layout.csl --arch=$arch --fabric-dims=12,5 --fabric-offsets=4,1 --params=W:4,H:3,N:17 --params=IN:3,OUT:4 -o out_$arch --memcpy --channels=2
  cs_python run.py --name out_$arch
done
