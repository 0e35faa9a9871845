# Ages the two files of an IOzone measurement by rewriting them at random, after listing B.9 of the snapshots thesis.

set $dir=/tmp
set $nthreads=1
set $iosize=8k
set $filesize=1m
set $workingset=0
set $directio=0
set $file1=iozonefileset1
set $file2=iozonefileset2

define file name=$file1,path=$dir,size=$filesize,prealloc=100,reuse
define file name=$file2,path=$dir,size=$filesize,prealloc=100,reuse

define process name=rand-write,instances=1
{
  thread name=rand-thread1,memsize=5m,instances=$nthreads
  {
    flowop write name=rand-write1,filename=$file1,iosize=$iosize,random,workingset=$workingset,directio=$directio
    flowop eventlimit name=rand-rate1
  }
  thread name=rand-thread2,memsize=5m,instances=$nthreads
  {
    flowop write name=rand-write2,filename=$file2,iosize=$iosize,random,workingset=$workingset,directio=$directio
    flowop eventlimit name=rand-rate2
  }
}
