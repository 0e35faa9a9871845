# webproxy: the cache of a proxy, one file per object
#
# Each thread drops an object, fetches another and writes it, and then serves five others from the cache. All objects lie
# in one directory, and none is flushed.
#
# From: Filebench's webproxy (1.4 and 1.5), its flowops, order and numbers. Sizes of objects are drawn around their mean
#   (gamma, shape 1.5), as in 1.4; in 1.5 all are alike. Filebench has the limit of rate without a variable for it.
# Mix: deletefile 1, createfile 1, appendfilerand 1, closefile 6, openfile 5, readwholefile 5
# Scale: nfiles
# $nfiles: objects there may be; four fifths of them are there at the start
# $meandirwidth: mean number of entries of a directory; this many is one directory for all
# $meanfilesize: mean bytes of an object
# $filesize: bytes of each object, drawn around their mean
# $nthreads: clients served at once
# $meaniosize: most bytes written of a new object; their mean is half of it
# $iosize: bytes of a read
# $eventrate: requests to files per second that all threads together keep to; 0: as fast as they can

set $dir=/tmp
set $nfiles=10000
set $meandirwidth=1000000
set $meanfilesize=16k
set $filesize=randvar(type=gamma,mean=$meanfilesize,gamma=1500)
set $nthreads=100
set $meaniosize=16k
set $iosize=1m
set $eventrate=0

eventgen rate=$eventrate

define fileset name=cache,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=80

define flowop name=object {
  flowop openfile name=open,filesetname=cache,fd=1
  flowop readwholefile name=read,fd=1,iosize=$iosize
  flowop closefile name=close,fd=1
}

define process name=proxy {
  thread name=client,memsize=10m,instances=$nthreads {
    flowop deletefile name=drop,filesetname=cache
    flowop createfile name=fetch,filesetname=cache,fd=1
    flowop appendfilerand name=store,fd=1,iosize=$meaniosize
    flowop closefile name=stored,fd=1
    flowop object name=hit,iters=5
    flowop opslimit name=limit
  }
}

run 60
