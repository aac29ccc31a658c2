# SPDX-License-Identifier: Apache-2.0
set -e
cslc layout.csl --fabric-dims=15,10 --fabric-offsets=4,1 --params=width:8,height:8,num_inputs:40,num_buckets:3,bucket_size:3 --colors=C_ROW0:0,C_ROW1:1,C_COL0:2,C_COL1:3,T0:4,T1:5,T2:6,RESULT:20 -o out --memcpy --channels=1
cs_python run.py --name out
