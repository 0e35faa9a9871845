# micro-truncate: files cut and extended
#
# Each thread opens a file by chance and sets its length $count times, to any up to $maxlength. What lies behind the old
# end becomes a hole.
#
# From: our own numbers; Filebench has no such flowop.
# Mix: openfile 1, truncate 1000, closefile 1
# Scale: none
# $nfiles: files
# $maxlength: greatest length, bytes
# $length: length that is set, drawn; all up to the greatest alike
# $count: calls for each file
# $nthreads: threads

set $dir=/tmp
set $nfiles=100
set $maxlength=1m
set $length=cvar(type=uniform,parameters="lower:0;upper:$maxlength")
set $count=1000
set $nthreads=1

define fileset name=files,path=$dir,size=0,entries=$nfiles,dirwidth=20,prealloc=100,reuse

define process name=micro {
  thread name=micro,memsize=1m,instances=$nthreads {
    flowop openfile name=open,filesetname=files,fd=1
    flowop truncate name=truncate,fd=1,value=$length,iters=$count
    flowop closefile name=close,fd=1
  }
}

run 60
