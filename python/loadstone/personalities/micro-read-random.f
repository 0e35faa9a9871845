# micro-read-random: blocks of large files read by chance
#
# Each thread keeps to one file and reads blocks of it, all equally often. What fits in memory is read from there;
# --size 2x-ram makes the device take part.
#
# From: Filebench's randomread (1.5), 8 KiB a read by one thread; its file has 5 GiB, ours 1 GiB.
# Mix: read 1
# Scale: filesize
# $nfiles: files
# $filesize: bytes of each file
# $iosize: bytes of a read
# $nthreads: threads
# $workingset: bytes of each file that are used; 0: all
# $directio: 1: past the page cache (O_DIRECT), in multiples of 4 KiB

set $dir=/tmp
set $nfiles=1
set $filesize=1g
set $iosize=8k
set $nthreads=1
set $workingset=0
set $directio=0

define fileset name=files,path=$dir,size=$filesize,entries=$nfiles,dirwidth=20,prealloc=100,reuse

define process name=micro {
  thread name=micro,memsize=1m,instances=$nthreads {
    flowop read name=read,filesetname=files,iosize=$iosize,random,workingset=$workingset,directio=$directio
  }
}

run 60
