# fileserver: home directories of many users, in whole files
#
# Each thread is a user who makes a file, appends to another, reads a third, removes a fourth and looks at the attributes
# of a fifth. Files are read and written from end to end, and made as often as removed. It stands for what an NFS or SMB
# server of home directories sees.
#
# From: Filebench's fileserver (1.4 and 1.5), its flowops, order and numbers. It emulates SPEC SFS (Kasampalis, "Copy On
#   Write Based File Systems", IMM-MSC-2010-63, section 4.2.3.3) and was the load of a monitored server (van Hoof,
#   "Performance metrics and benchmarking of an OpenSolaris NFS fileserver", 2010, section 4.2). Sizes of files are drawn
#   around their mean (gamma, shape 1.5), as in 1.4; in 1.5 all are alike. One read, two writes and three calls on names a
#   round are the 1/2/3 of Tarasov's thesis (FSL-13-04, 2013, table 5.4), which has 20,000 files: -D nfiles=20000.
# Mix: createfile 1, writewholefile 1, closefile 3, openfile 2, appendfilerand 1, readwholefile 1, deletefile 1,
#   statfile 1
# Scale: nfiles
# $nfiles: files there may be; four fifths of them are there at the start
# $meandirwidth: mean number of entries of a directory
# $meanfilesize: mean bytes of a file
# $filesize: bytes of each file, drawn around their mean
# $nthreads: users
# $iosize: bytes of a transfer
# $meanappendsize: most bytes of an append; their mean is half of it

set $dir=/tmp
set $nfiles=10000
set $meandirwidth=20
set $meanfilesize=128k
set $filesize=randvar(type=gamma,mean=$meanfilesize,gamma=1500)
set $nthreads=50
set $iosize=1m
set $meanappendsize=16k

define fileset name=homes,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=80

define process name=server {
  thread name=user,memsize=10m,instances=$nthreads {
    flowop createfile name=create,filesetname=homes,fd=1
    flowop writewholefile name=write,fd=1,iosize=$iosize
    flowop closefile name=written,fd=1
    flowop openfile name=find,filesetname=homes,fd=1
    flowop appendfilerand name=append,fd=1,iosize=$meanappendsize
    flowop closefile name=appended,fd=1
    flowop openfile name=open,filesetname=homes,fd=1
    flowop readwholefile name=read,fd=1,iosize=$iosize
    flowop closefile name=close,fd=1
    flowop deletefile name=delete,filesetname=homes
    flowop statfile name=stat,filesetname=homes
  }
}

run 60
