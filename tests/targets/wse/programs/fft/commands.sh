# SPDX-License-Identifier: Apache-2.0
cslc --arch=wse2 layout.csl --fabric-dims=12,3 --fabric-offsets=4,1 --params=N:16,DIM:1 -o out --memcpy --channels=1 && cs_python run.py --name out || exit 1
cslc --arch=wse3 layout.csl --fabric-dims=12,3 --fabric-offsets=4,1 --params=N:8,DIM:4 -o out3 --memcpy --channels=1 && cs_python run.py --name out3 --inverse || exit 1
