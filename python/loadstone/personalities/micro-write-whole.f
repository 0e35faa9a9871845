# micro-write-whole: small files overwritten whole
#
# Each thread opens a file by chance, overwrites it from begin to end and closes it.
#
# From: the part of Filebench's fileserver (1.5) that writes, on files that are there; 16 KiB a file, as in createfiles.
# Mix: openfile 1, writewholefile 1, closefile 1
# Scale: nfiles
# $nfiles: files
# $meandirwidth: mean number of entries of a directory
# $filesize: bytes of each file
# $iosize: most bytes of a write
# $nthreads: threads

set $dir=/tmp
set $nfiles=10000
set $meandirwidth=100
set $filesize=16k
set $iosize=1m
set $nthreads=1

define fileset name=files,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=100,reuse

define process name=micro {
  thread name=micro,memsize=1m,instances=$nthreads {
    flowop openfile name=open,filesetname=files,fd=1
    flowop writewholefile name=write,fd=1,iosize=$iosize
    flowop closefile name=close,fd=1
  }
}

run 60
