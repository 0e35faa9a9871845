# micro-mmap-write: blocks copied to mapped files
#
# Each thread maps a file once and copies blocks of its own memory to it. The kernel writes them back when it sees fit.
#
# From: our own numbers; Filebench has no such flowop.
# Mix: mmapwrite 1
# Scale: filesize
# $nfiles: files
# $filesize: bytes of each file
# $iosize: bytes of a copy
# $random: false: in order, from begin to end, and again
# $nthreads: threads

set $dir=/tmp
set $nfiles=1
set $filesize=256m
set $iosize=4k
set $random=true
set $nthreads=1

define fileset name=files,path=$dir,size=$filesize,entries=$nfiles,dirwidth=20,prealloc=100,reuse

define process name=micro {
  thread name=micro,memsize=1m,instances=$nthreads {
    flowop mmapwrite name=write,filesetname=files,iosize=$iosize,random=$random
  }
}

run 60
