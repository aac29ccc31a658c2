# SPDX-License-Identifier: Apache-2.0
set -e
for arch in wse2 wse3; do
  cslc layout.csl --arch=$arch --fabric-dims=11,3 --fabric-offsets=4,1 --params=N:16,P:4,inverse:0 -o out --memcpy --channels=1
  cs_python run.py --name out
  cslc layout.csl --arch=$arch --fabric-dims=11,3 --fabric-offsets=4,1 --params=N:8,P:2,inverse:1 -o out_inverse --memcpy --channels=1
  cs_python run.py --name out_inverse --inverse
done
