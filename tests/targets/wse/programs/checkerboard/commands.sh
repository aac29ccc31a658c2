# SPDX-License-Identifier: Apache-2.0
cslc src/layout.csl --fabric-dims=11,7 --fabric-offsets=4,1 --params=kw:4,kh:4,LH:3,LW:2 --colors=x_in:1,y_in:2,out_c:3 -o out --memcpy --channels=1 --width-west-buf=0 --width-east-buf=0 && cs_python ./run.py --name out --cmaddr "" || exit 1
