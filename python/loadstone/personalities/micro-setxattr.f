# micro-setxattr: extended attributes set
#
# Each thread opens a file by chance and sets its attribute $count times. The file system must have extended attributes
# of users (xattr(7)).
#
# From: our own numbers; Filebench has no such flowop.
# Mix: openfile 1, setxattr 100, closefile 1
# Scale: none
# $nfiles: files
# $meandirwidth: mean number of entries of a directory
# $iosize: bytes of the attribute
# $count: calls for each file
# $nthreads: threads

set $dir=/tmp
set $nfiles=1000
set $meandirwidth=20
set $iosize=64
set $count=100
set $nthreads=1

define fileset name=files,path=$dir,size=0,entries=$nfiles,dirwidth=$meandirwidth,prealloc=100,reuse

define process name=micro {
  thread name=micro,memsize=1m,instances=$nthreads {
    flowop openfile name=open,filesetname=files,fd=1
    flowop setxattr name=setxattr,fd=1,iosize=$iosize,iters=$count
    flowop closefile name=close,fd=1
  }
}

run 60
