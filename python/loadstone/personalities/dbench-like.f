# dbench-like: office users of a file server, as dbench's load file has them
#
# Each thread is a client that opens files and reads them in small pieces, saves some new and some old ones, and asks a great
# deal about names, attributes and directories. Files are removed as often as made. Next to nothing is flushed, so it
# measures calls and caches more than devices.
#
# From: the load file of dbench 4.0 (Debian's client.txt, 458,344 lines, a NetBench run of one client), its operations
#   counted. A round here is what there is for each three of its 3,355 renames, rounded: 37.7 opens of what is there, 14.4 of
#   what is not, 52.0 closes, 111.1 reads, 35.3 writes, 64.2 looks at names, 11.3 at open files, 24.8 searches, 14.3
#   removals and 5.0 flushes. Sizes of transfers are those of the file in seven and eight classes, sizes of files as they
#   are at its end (113 of 210 KiB on average; 170 names for each client). What has no flowop is left out: free space asked
#   for (11.8), times set (5.8), locks (0.2). So are the 18.8 opens that find nothing; the 21.8 looks and 12.8 searches
#   that find nothing are done to what is there. Clients share a tree where dbench gives each its own.
# Mix: createfile 14, write 35, closefile 52, openfile 38, fsync 5, statfile 75, read 112, listdir 25, rename 3,
#   deletefile 14
# Scale: nfiles
# $nclients: clients
# $nfiles: files there may be; two thirds of them are there at the start
# $meandirwidth: mean number of entries of a directory
# $meanfilesize: mean bytes of a file
# $filesize: bytes of each file, drawn around their mean
# $readsize: bytes of a read, drawn
# $writesize: bytes of a write, drawn

set $dir=/tmp
set $nclients=4
set $nfiles=680
set $meandirwidth=20
set $meanfilesize=210k
set $filesize=randvar(type=gamma,mean=$meanfilesize,gamma=1500)
set $readsize=randvar(type=tabular,randtable={{67,4k,4k},{13.4,60k,60k},{6.5,1613,1613},{5.4,203,203},{4.1,7979,7979},{2.2,15012,15012},{1.4,2903,2903}})
set $writesize=randvar(type=tabular,randtable={{32,64k,64k},{25.2,4k,4k},{18.8,1,1},{5.2,12209,12209},{4.9,1935,1935},{4.7,27k,27k},{5.9,8k,8k},{3.3,292,292}})

define fileset name=share,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=66

define flowop name=making {
  flowop createfile name=create,filesetname=share,fd=1
  flowop write name=write,fd=1,iosize=$writesize,iters=2
  flowop closefile name=close,fd=1
}

define flowop name=saving {
  flowop openfile name=open,filesetname=share,fd=1
  flowop write name=write,fd=1,iosize=$writesize
  flowop fsync name=flush,fd=1
  flowop statfile name=stat,fd=1
  flowop closefile name=close,fd=1
}

define flowop name=reading {
  flowop openfile name=open,filesetname=share,fd=1
  flowop read name=read,fd=1,iosize=$readsize,iters=4
  flowop closefile name=close,fd=1
}

define flowop name=changing {
  flowop openfile name=open,filesetname=share,fd=1
  flowop write name=write,fd=1,iosize=$writesize
  flowop statfile name=stat,fd=1
  flowop closefile name=close,fd=1
}

define flowop name=peeking {
  flowop openfile name=open,filesetname=share,fd=1
  flowop statfile name=stat,fd=1
  flowop read name=read,fd=1,iosize=$readsize
  flowop closefile name=close,fd=1
}

define process name=clients {
  thread name=client,memsize=1m,instances=$nclients {
    flowop making name=make,iters=14
    flowop saving name=save,iters=5
    flowop changing name=change,iters=2
    flowop reading name=read,iters=27
    flowop peeking name=peek,iters=4
    flowop statfile name=stat,filesetname=share,iters=64
    flowop listdir name=find,filesetname=share,iters=25
    flowop rename name=rename,filesetname=share,iters=3
    flowop deletefile name=delete,filesetname=share,iters=14
  }
}

run 60
