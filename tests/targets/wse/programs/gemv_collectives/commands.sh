# SPDX-License-Identifier: Apache-2.0
set -e
for arch in wse2 wse3; do
  cslc ./layout.csl --arch=$arch --fabric-dims=12,5 --fabric-offsets=4,1 --params=Pw:5,Ph:3 --params=Mt:4,Nt:3 -o out --memcpy --channels=1
  cs_python run.py --name out
done
