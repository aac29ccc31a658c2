# SPDX-License-Identifier: Apache-2.0
for arch in wse2 wse3; do
cslc --arch=$arch ./src/layout.csl --fabric-dims=12,7 --fabric-offsets=4,1 --params=width:5,height:5,MAX_ZDIM:6 --params=BLOCK_SIZE:2 -o=out_$arch --memcpy --channels=2 --width-west-buf=0 --width-east-buf=0 || exit 1
cs_python ./run.py -m=5 -n=5 -k 6 --latestlink out_$arch --channels=2 --width-west-buf=0 --width-east-buf=0 --zDim=5 --run-only || exit 1
done
