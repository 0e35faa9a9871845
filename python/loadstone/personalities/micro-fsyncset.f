# micro-fsyncset: several files flushed one after the other
#
# Each thread has four files open, overwrites a block of each by chance and flushes all four; each flush is counted, so
# there are as many as writes.
#
# From: our own numbers; no workload of Filebench uses its fsyncset.
# Mix: write 4, fsyncset 1
# Scale: filesize
# $nfiles: files
# $filesize: bytes of each file
# $iosize: bytes of a write
# $nthreads: threads

set $dir=/tmp
set $nfiles=16
set $filesize=4m
set $iosize=4k
set $nthreads=1

define fileset name=files,path=$dir,size=$filesize,entries=$nfiles,dirwidth=20,prealloc=100,reuse

define process name=micro {
  thread name=micro,memsize=1m,instances=$nthreads {
    flowop write name=write-1,filesetname=files,fd=1,iosize=$iosize,random
    flowop write name=write-2,filesetname=files,fd=2,iosize=$iosize,random
    flowop write name=write-3,filesetname=files,fd=3,iosize=$iosize,random
    flowop write name=write-4,filesetname=files,fd=4,iosize=$iosize,random
    flowop fsyncset name=fsyncset,filesetname=files
  }
}

run 60
