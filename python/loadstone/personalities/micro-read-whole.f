# micro-read-whole: small files read whole
#
# Each thread opens a file by chance, reads it from begin to end and closes it.
#
# From: the part of Filebench's webserver (1.5) that reads: 16 KiB a file, asked for by the MiB.
# Mix: openfile 1, readwholefile 1, closefile 1
# Scale: nfiles
# $nfiles: files
# $meandirwidth: mean number of entries of a directory
# $filesize: bytes of each file
# $iosize: most bytes of a read
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
    flowop readwholefile name=read,fd=1,iosize=$iosize
    flowop closefile name=close,fd=1
  }
}

run 60
