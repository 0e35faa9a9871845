# micro-write-random: blocks of large files overwritten by chance
#
# Each thread keeps to one file and overwrites blocks of it, all equally often. Nothing is flushed but by the kernel.
#
# From: Filebench's randomwrite (1.5), 8 KiB a write by one thread; its file has 5 GiB, ours 1 GiB.
# Mix: write 1
# Scale: filesize
# $nfiles: files
# $filesize: bytes of each file
# $iosize: bytes of a write
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
    flowop write name=write,filesetname=files,iosize=$iosize,random,workingset=$workingset,directio=$directio
  }
}

run 60
