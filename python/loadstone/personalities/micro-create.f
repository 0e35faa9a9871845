# micro-create: empty files made
#
# Each thread makes files until $nfiles are there, and then the run ends by itself; a rate needs no more. Give more
# files for a longer run.
#
# From: Filebench's createfiles (1.5) without its writes: 50,000 files, about 100 in a directory; it has 16 threads.
# Mix: createfile 1, closefile 1
# Scale: none
# $nfiles: files that are made
# $meandirwidth: mean number of entries of a directory
# $nthreads: threads

set $dir=/tmp
set $nfiles=50000
set $meandirwidth=100
set $nthreads=1

set mode quit alldone

define fileset name=files,path=$dir,size=0,entries=$nfiles,dirwidth=$meandirwidth

define process name=micro {
  thread name=micro,memsize=1m,instances=$nthreads {
    flowop createfile name=create,filesetname=files,fd=1
    flowop closefile name=close,fd=1
  }
}

run
