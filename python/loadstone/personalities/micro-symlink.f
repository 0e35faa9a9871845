# micro-symlink: symbolic links made
#
# Each thread makes symbolic links at free names until no name is free, and then the run ends by itself. A tenth of the
# names are files at the start.
#
# From: our own numbers; Filebench has no such flowop.
# Mix: symlink 1
# Scale: none
# $nfiles: names there are
# $meandirwidth: mean number of entries of a directory
# $nthreads: threads

set $dir=/tmp
set $nfiles=50000
set $meandirwidth=100
set $nthreads=1

set mode quit alldone

define fileset name=files,path=$dir,size=0,entries=$nfiles,dirwidth=$meandirwidth,prealloc=10

define process name=micro {
  thread name=micro,memsize=1m,instances=$nthreads {
    flowop symlink name=symlink,filesetname=files
  }
}

run
