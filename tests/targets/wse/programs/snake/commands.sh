# SPDX-License-Identifier: Apache-2.0
set -e
for arch in wse2 wse3; do
  cslc layout.csl --arch $arch --fabric-dims=11,6 --fabric-offsets=4,1 --params=width:4,height:4,N:5 -o=out_$arch --memcpy --channels 2 --verbose
  cs_python run.py --name out_$arch
done
