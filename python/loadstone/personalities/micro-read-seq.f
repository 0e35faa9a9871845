# micro-read-seq: large files read from begin to end, again and again
#
# Each thread keeps to one file. What fits in memory is read from there; --size 2x-ram makes the device take part.
#
# From: Filebench's singlestreamread (1.5), 1 MiB a read by one thread; its file has 5 GiB, ours 1 GiB.
# Mix: read 1
# Scale: filesize
# $nfiles: files
# $filesize: bytes of each file
# $iosize: bytes of a read
# $nthreads: threads
# $directio: 1: past the page cache (O_DIRECT), in multiples of 4 KiB

set $dir=/tmp
set $nfiles=1
set $filesize=1g
set $iosize=1m
set $nthreads=1
set $directio=0

define fileset name=files,path=$dir,size=$filesize,entries=$nfiles,dirwidth=20,prealloc=100,reuse

define process name=micro {
  thread name=micro,memsize=1m,instances=$nthreads {
    flowop read name=read,filesetname=files,iosize=$iosize,directio=$directio
  }
}

run 60
