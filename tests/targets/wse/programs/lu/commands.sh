# SPDX-License-Identifier: Apache-2.0
set -e
for arch in wse2 wse3; do
  for size in W:4,n:11 W:2,n:5 W:5,n:5; do
    cslc --arch=$arch --sdk-version=2.10 layout.csl --fabric-dims=12,3 --fabric-offsets=4,1 --params=$size -o out --memcpy --channels=1
    cs_python run.py --name out
  done
done
