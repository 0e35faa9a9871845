# micro-delete: files removed
#
# Each thread removes files by chance until none is left, and then the run ends by itself. Give more files for a longer
# run.
#
# From: Filebench's filemicro_delete (1.5): 16 KiB a file, about 100 in a directory; it has 5,000 files and 16 threads.
# Mix: deletefile 1
# Scale: nfiles
# $nfiles: files
# $meandirwidth: mean number of entries of a directory
# $filesize: bytes of each file
# $nthreads: threads

set $dir=/tmp
set $nfiles=10000
set $meandirwidth=100
set $filesize=16k
set $nthreads=1

set mode quit alldone

define fileset name=files,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=100

define process name=micro {
  thread name=micro,memsize=1m,instances=$nthreads {
    flowop deletefile name=delete,filesetname=files
  }
}

run
