# SPDX-License-Identifier: Apache-2.0
cslc --arch=wse2 ./src/layout.csl --fabric-dims=11,6 --fabric-offsets=4,1 --params=ncols:16,nrows:16,pcols:4,prows:4,max_local_nnz:12 --params=local_vec_sz:4 -o=out --memcpy --channels=1 && cs_python run.py --name out || exit 1
