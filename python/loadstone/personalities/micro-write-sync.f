# micro-write-sync: blocks of large files overwritten by chance, each stable when it ends
#
# As micro-write-random, with files opened with O_SYNC.
#
# From: Filebench's randomwrite (1.5) with the attribute dsync, and blocks of 4 KiB, what most file systems allocate.
# Mix: write 1
# Scale: filesize
# $nfiles: files
# $filesize: bytes of each file
# $iosize: bytes of a write
# $nthreads: threads
# $directio: 1: past the page cache (O_DIRECT), in multiples of 4 KiB

set $dir=/tmp
set $nfiles=1
set $filesize=1g
set $iosize=4k
set $nthreads=1
set $directio=0

define fileset name=files,path=$dir,size=$filesize,entries=$nfiles,dirwidth=20,prealloc=100,reuse

define process name=micro {
  thread name=micro,memsize=1m,instances=$nthreads {
    flowop write name=write,filesetname=files,iosize=$iosize,random,dsync,directio=$directio
  }
}

run 60
