# micro-mkdir: directories made
#
# Each thread makes directories until $ndirs are there, and then the run ends by itself. Give more for a longer run.
#
# From: Filebench's makedirs (1.5): 10,000 directories, about 100 in one; it has 16 threads.
# Mix: makedir 1
# Scale: none
# $ndirs: directories
# $meandirwidth: mean number of entries of a directory
# $nthreads: threads

set $dir=/tmp
set $ndirs=10000
set $meandirwidth=100
set $nthreads=1

set mode quit alldone

define fileset name=tree,path=$dir,size=0,leafdirs=$ndirs,dirwidth=$meandirwidth

define process name=micro {
  thread name=micro,memsize=1m,instances=$nthreads {
    flowop makedir name=mkdir,filesetname=tree
  }
}

run
