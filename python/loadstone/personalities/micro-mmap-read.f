# micro-mmap-read: blocks copied from mapped files
#
# Each thread maps a file once and copies blocks of it to its own memory. A page that is not there is fetched by a
# fault, which is in the time of the copy.
#
# From: our own numbers; Filebench has no such flowop.
# Mix: mmapread 1
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
    flowop mmapread name=read,filesetname=files,iosize=$iosize,random=$random
  }
}

run 60
