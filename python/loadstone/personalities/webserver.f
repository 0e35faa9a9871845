# webserver: pages read whole, and a log of who read them
#
# Each thread serves ten pages, files that nobody changes, and then adds an entry to the one log. Nearly all of it is
# reads, so what fits in memory is read from there; --size 2x-ram makes the device take part. The log becomes longer as
# long as this runs.
#
# From: Filebench's webserver (1.4 and 1.5), its flowops, order and numbers. Sizes of pages are drawn around their mean
#   (gamma, shape 1.5), as in 1.4; in 1.5 all are alike. Ten reads of whole files to a write are the 10/1/0 of Tarasov's
#   thesis (FSL-13-04, 2013, table 5.4), which has 100,000 files: -D nfiles=100000.
# Mix: openfile 10, readwholefile 10, closefile 10, appendfilerand 1
# Scale: nfiles
# $nfiles: pages
# $meandirwidth: mean number of entries of a directory
# $meanfilesize: mean bytes of a page, and bytes of the log at the start
# $filesize: bytes of each page, drawn around their mean
# $nthreads: requests served at once
# $iosize: bytes of a read
# $meanappendsize: most bytes of an entry of the log; their mean is half of it

set $dir=/tmp
set $nfiles=1000
set $meandirwidth=20
set $meanfilesize=16k
set $filesize=randvar(type=gamma,mean=$meanfilesize,gamma=1500)
set $nthreads=100
set $iosize=1m
set $meanappendsize=16k

define fileset name=pages,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=100,readonly
define fileset name=logs,path=$dir,size=$meanfilesize,entries=1,dirwidth=$meandirwidth,prealloc=100

define flowop name=page {
  flowop openfile name=open,filesetname=pages,fd=1
  flowop readwholefile name=read,fd=1,iosize=$iosize
  flowop closefile name=close,fd=1
}

define process name=server {
  thread name=request,memsize=10m,instances=$nthreads {
    flowop page name=page,iters=10
    flowop appendfilerand name=log,filesetname=logs,fd=2,iosize=$meanappendsize
  }
}

run 60
