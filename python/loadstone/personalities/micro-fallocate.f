# micro-fallocate: space of files reserved
#
# Each thread opens a file by chance and reserves its first $iosize bytes by fallocate(2); then it is cut to nothing, so
# any duration is steady. The four calls are told one by one.
#
# From: our own numbers; Filebench has no such flowop.
# Mix: openfile 1, fallocate 1, truncate 1, closefile 1
# Scale: none
# $nfiles: files
# $iosize: bytes that are reserved
# $nthreads: threads

set $dir=/tmp
set $nfiles=100
set $iosize=1m
set $nthreads=1

define fileset name=files,path=$dir,size=0,entries=$nfiles,dirwidth=20,prealloc=100,reuse

define process name=micro {
  thread name=micro,memsize=1m,instances=$nthreads {
    flowop openfile name=open,filesetname=files,fd=1
    flowop fallocate name=fallocate,fd=1,iosize=$iosize
    flowop truncate name=cut,fd=1,value=0
    flowop closefile name=close,fd=1
  }
}

run 60
