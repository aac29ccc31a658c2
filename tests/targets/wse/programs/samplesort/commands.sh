# SPDX-License-Identifier: Apache-2.0
set -e
for size in W:3,H:2,n:17 W:1,H:1,n:5 W:2,H:4,n:9; do
  cslc --arch=wse3 layout.csl --fabric-dims=12,8 --fabric-offsets=4,1 --params=$size -o out --memcpy --channels=1
  cs_python run.py --name out
done
