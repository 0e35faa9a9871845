# micro-aio-write: asynchronous writes
#
# Each thread begins $count writes at places by chance, and waits until half of those under way have ended. Its writes
# go through an io_uring of its own.
#
# From: the database writers of Filebench's oltp (1.5), which begin 100 writes before they wait; blocks of 4 KiB and no
#   O_SYNC.
# Mix: aiowrite 100, aiowait 1
# Scale: filesize
# $nfiles: files
# $filesize: bytes of each file
# $iosize: bytes of a write
# $count: writes begun before a wait
# $nthreads: threads
# $directio: 1: past the page cache (O_DIRECT), in multiples of 4 KiB

set $dir=/tmp
set $nfiles=1
set $filesize=1g
set $iosize=4k
set $count=100
set $nthreads=1
set $directio=0

define fileset name=files,path=$dir,size=$filesize,entries=$nfiles,dirwidth=20,prealloc=100,reuse

define process name=micro {
  thread name=micro,memsize=1m,instances=$nthreads {
    flowop aiowrite name=write,filesetname=files,iosize=$iosize,random,iters=$count,directio=$directio
    flowop aiowait name=wait
  }
}

run 60
