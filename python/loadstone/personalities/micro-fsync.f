# micro-fsync: writes flushed by fsync(2)
#
# Each thread overwrites a block by chance and makes data and attributes stable, as there would be nothing to flush
# otherwise.
#
# From: our own numbers: a block of 4 KiB for each flush; Filebench's filemicro_rwritefsync (1.5) flushes after many.
# Mix: write 1, fsync 1
# Scale: filesize
# $nfiles: files
# $filesize: bytes of each file
# $iosize: bytes of a write
# $nthreads: threads

set $dir=/tmp
set $nfiles=1
set $filesize=64m
set $iosize=4k
set $nthreads=1

define fileset name=files,path=$dir,size=$filesize,entries=$nfiles,dirwidth=20,prealloc=100,reuse

define process name=micro {
  thread name=micro,memsize=1m,instances=$nthreads {
    flowop write name=write,filesetname=files,fd=1,iosize=$iosize,random
    flowop fsync name=fsync,fd=1
  }
}

run 60
