# micro-fstat: attributes of open files asked for
#
# Each thread opens a file by chance and calls fstat(2) of it $count times, so that no name is looked up.
#
# From: our own numbers; Filebench's statfile is always by name.
# Mix: openfile 1, statfile 1000, closefile 1
# Scale: none
# $nfiles: files
# $meandirwidth: mean number of entries of a directory
# $count: calls for each file
# $nthreads: threads

set $dir=/tmp
set $nfiles=1000
set $meandirwidth=20
set $count=1000
set $nthreads=1

define fileset name=files,path=$dir,size=0,entries=$nfiles,dirwidth=$meandirwidth,prealloc=100,reuse

define process name=micro {
  thread name=micro,memsize=1m,instances=$nthreads {
    flowop openfile name=open,filesetname=files,fd=1
    flowop statfile name=stat,fd=1,iters=$count
    flowop closefile name=close,fd=1
  }
}

run 60
