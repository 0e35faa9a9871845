# micro-write-seq: large files overwritten from begin to end, again and again
#
# Each thread opens a file, overwrites it in order and closes it. Nothing is flushed but by the kernel; nothing becomes
# longer.
#
# From: Filebench's singlestreamwrite (1.5), 1 MiB a write by one thread. That one writes on behind the end of its file
#   until the file system is full; ours begins again, so any duration is steady.
# Mix: openfile 1, write 1024, closefile 1
# Scale: filesize
# $nfiles: files
# $filesize: bytes of each file
# $iosize: bytes of a write
# $count: writes from begin to end; follows from the two
# $nthreads: threads
# $directio: 1: past the page cache (O_DIRECT), in multiples of 4 KiB

set $dir=/tmp
set $nfiles=1
set $filesize=1g
set $iosize=1m
set $count=$filesize/$iosize
set $nthreads=1
set $directio=0

define fileset name=files,path=$dir,size=$filesize,filesizegamma=0,entries=$nfiles,dirwidth=20,prealloc=100,reuse

define process name=micro {
  thread name=micro,memsize=1m,instances=$nthreads {
    flowop openfile name=open,filesetname=files,fd=1,directio=$directio
    flowop write name=write,fd=1,iosize=$iosize,iters=$count
    flowop closefile name=close,fd=1
  }
}

run 60
