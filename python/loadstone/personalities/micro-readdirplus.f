# micro-readdirplus: directories listed with the attributes of all in them
#
# As micro-listdir, and each name is asked for its attributes, as ls -l does and an NFS client by READDIRPLUS.
#
# From: our own numbers; Filebench has no such flowop.
# Mix: readdirplus 1
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
    flowop readdirplus name=readdirplus,filesetname=files
  }
}

run 60
