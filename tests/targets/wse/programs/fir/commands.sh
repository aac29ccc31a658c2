# SPDX-License-Identifier: Apache-2.0
set -e
for arch in wse2 wse3; do
  cslc --arch=$arch --sdk-version=2.10 layout.csl --fabric-dims=8,3 --fabric-offsets=4,1 --params=taps:5,n:31 -o out --memcpy --channels=1
  cs_python run.py --name out
done
