# micro-listdir: directories listed
#
# Each thread opens a directory by chance, reads all its names by getdents64(2) and closes it; this counts as one.
#
# From: Filebench's listdirs (1.5): 50,000 empty files; it has 5 entries in a directory and 16 threads.
# Mix: listdir 1
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
    flowop listdir name=listdir,filesetname=files
  }
}

run 60
