#include <cstdio>
#include <cstdlib>
#include "../csl/stream_programs.h"
using namespace weft::wse; using namespace weft::wse::testing;
int main(int argc,char**argv){
  int a=atoi(argv[1]),b=atoi(argv[2]); bool threads=argc>3; int bad=0; 
  for(int seed=a;seed<=b;++seed) for(Arch arch:{Arch::wse2,Arch::wse3}){
    StreamPrograms g((unsigned)seed); const Layout l=csl::compile(g.options(arch));
    auto slow=run(l,{.fast=false}); auto fast=run(l,{});
    bool m=slow.memory==fast.memory,c=slow.counters==fast.counters;
    if(slow.cycles!=fast.cycles||!m||!c){++bad;
      printf("seed %d %s n=%d cycles %ld %ld memory %d counters:",seed,arch==Arch::wse3?"wse3":"wse2",g.length(),(long)slow.cycles,(long)fast.cycles,m);
      for(size_t k=0;k<slow.counters.size();++k) printf(" %ld/%ld",(long)slow.counters[k],(long)fast.counters[k]);
      printf("\n");}
    if(threads) for(int t:{2,3}){auto s=run(l,{.threads=t}); if(s.cycles!=fast.cycles||s.memory!=fast.memory||s.counters!=fast.counters){++bad;printf("seed %d threads %d\n",seed,t);}}
  }
  printf("%d bad\n",bad); return bad!=0;
}
