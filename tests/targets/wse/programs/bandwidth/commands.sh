# SPDX-License-Identifier: Apache-2.0
for channels in 1 2 4; do
cslc ./layout.csl --arch=wse3 --fabric-dims=12,10 --fabric-offsets=4,1 --params=width:5,height:8,size:512 --memcpy --channels=$channels -o out_$channels || exit 1
done
cs_python run.py --name out || exit 1
