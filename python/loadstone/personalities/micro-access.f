# micro-access: permission to read asked for by name
#
# Each thread calls faccessat(2) of files by chance, all equally often. The files are empty.
#
# From: our own numbers; Filebench has no such flowop.
# Mix: access 1
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
    flowop access name=access,filesetname=files
  }
}

run 60
