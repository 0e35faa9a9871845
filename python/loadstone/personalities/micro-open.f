# micro-open: files opened and closed
#
# Each thread opens a file by chance and closes it. The files are empty.
#
# From: Filebench's openfiles (1.5): 50,000 files, about 100 in a directory; it has 16 threads.
# Mix: openfile 1, closefile 1
# Scale: none
# $nfiles: files
# $meandirwidth: mean number of entries of a directory
# $nthreads: threads

set $dir=/tmp
set $nfiles=50000
set $meandirwidth=100
set $nthreads=1

define fileset name=files,path=$dir,size=0,entries=$nfiles,dirwidth=$meandirwidth,prealloc=100,reuse

define process name=micro {
  thread name=micro,memsize=1m,instances=$nthreads {
    flowop openfile name=open,filesetname=files,fd=1
    flowop closefile name=close,fd=1
  }
}

run 60
