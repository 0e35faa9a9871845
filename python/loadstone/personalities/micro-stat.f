# micro-stat: attributes of files asked for by name
#
# Each thread calls fstatat(2) of files by chance, all equally often. The files are empty.
#
# From: Filebench's filemicro_statfile (1.5): 10,000 files, about 20 in a directory; it has 20 threads, and its files
#   are not empty.
# Mix: statfile 1
# Scale: none
# $nfiles: files
# $meandirwidth: mean number of entries of a directory
# $nthreads: threads

set $dir=/tmp
set $nfiles=10000
set $meandirwidth=20
set $nthreads=1

define fileset name=files,path=$dir,size=0,entries=$nfiles,dirwidth=$meandirwidth,prealloc=100,reuse

define process name=micro {
  thread name=micro,memsize=1m,instances=$nthreads {
    flowop statfile name=stat,filesetname=files
  }
}

run 60
