# micro-copy-range: files copied within the kernel
#
# Each thread opens a source and a copy by chance and copies the first onto the second by copy_file_range(2), piece
# after piece. Where the file system can share blocks the call shares them, and copies nothing.
#
# From: our own numbers; Filebench has no such flowop.
# Mix: openfile 2, copyfilerange 64, closefile 2
# Scale: filesize
# $nfiles: sources, and as many copies
# $filesize: bytes of each file
# $iosize: bytes of a piece
# $count: pieces of a file; follows from the two
# $nthreads: threads

set $dir=/tmp
set $nfiles=8
set $filesize=64m
set $iosize=1m
set $count=$filesize/$iosize
set $nthreads=1

define fileset name=sources,path=$dir,size=$filesize,filesizegamma=0,entries=$nfiles,dirwidth=20,prealloc=100,reuse
define fileset name=copies,path=$dir,size=$filesize,filesizegamma=0,entries=$nfiles,dirwidth=20,prealloc=100,reuse

define process name=micro {
  thread name=micro,memsize=1m,instances=$nthreads {
    flowop openfile name=from,filesetname=sources,fd=1
    flowop openfile name=to,filesetname=copies,fd=2
    flowop copyfilerange name=copy,srcfd=1,fd=2,iosize=$iosize,iters=$count
    flowop closefile name=close-to,fd=2
    flowop closefile name=close-from,fd=1
  }
}

run 60
