# micro-append: blocks added to the ends of files
#
# Each thread opens a file and adds to its end; after $count times it is cut to nothing, so any duration is steady.
#
# From: Filebench's filemicro_writefsync (1.5), 8 KiB an append, without its fsync and without its end after 1 GiB.
# Mix: openfile 1, appendfile 1000, truncate 1, closefile 1
# Scale: none
# $nfiles: files
# $iosize: bytes of an append
# $count: appends before a file is cut
# $nthreads: threads

set $dir=/tmp
set $nfiles=16
set $iosize=8k
set $count=1000
set $nthreads=1

define fileset name=files,path=$dir,size=0,entries=$nfiles,dirwidth=20,prealloc=100,reuse

define process name=micro {
  thread name=micro,memsize=1m,instances=$nthreads {
    flowop openfile name=open,filesetname=files,fd=1
    flowop appendfile name=append,fd=1,iosize=$iosize,iters=$count
    flowop truncate name=cut,fd=1,value=0
    flowop closefile name=close,fd=1
  }
}

run 60
