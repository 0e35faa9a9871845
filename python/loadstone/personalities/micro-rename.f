# micro-rename: files renamed
#
# Each thread gives a file by chance a free name by chance, often in another directory. Half of the names are free, so
# any duration is steady. The files are empty.
#
# From: our own numbers; Filebench has no such flowop.
# Mix: rename 1
# Scale: none
# $nfiles: names there are
# $meandirwidth: mean number of entries of a directory
# $nthreads: threads

set $dir=/tmp
set $nfiles=20000
set $meandirwidth=20
set $nthreads=1

define fileset name=files,path=$dir,size=0,entries=$nfiles,dirwidth=$meandirwidth,prealloc=50

define process name=micro {
  thread name=micro,memsize=1m,instances=$nthreads {
    flowop rename name=rename,filesetname=files
  }
}

run 60
