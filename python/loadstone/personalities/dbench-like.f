# dbench-like: office users of a file server, as dbench's load file has them
#
# Each thread is a client that opens files and reads them in small pieces, saves some new and some old ones, and asks a great
# deal about names, attributes and directories. Files are removed as often as made. Next to nothing is flushed, so it
# measures calls and caches more than devices.
#
# From: the load file of dbench 4.0 (Debian's client.txt, 458,344 lines, a NetBench run of one client), its operations
#   counted. A round here has as many of each as there are for each of its 3,355 renames, rounded: per rename 12.6 opens
#   of what is there, 4.8 of what is not, 17.3 closes, 37.0 reads, 11.8 writes, 21.4 looks at names, 3.8 at open files,
#   8.3 searches, 4.8 removals, 1.7 flushes. Sizes of transfers are those of the file in seven and eight classes. What has
#   no flowop is left out: free space asked for (3.9), times set (1.9), locks (0.08), and so are the 6.3 opens, 7.3 looks
#   and 4.3 searches that find nothing; looks and searches that do find something take the place of the latter two. Clients
#   share a tree where dbench gives each its own.
# Mix: createfile 5, write 12, closefile 17, openfile 12, fsync 2, statfile 25, read 37, listdir 8, rename 1,
#   deletefile 5
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

define flowop name=peeking {
  flowop openfile name=open,filesetname=share,fd=1
  flowop statfile name=stat,fd=1,iters=2
  flowop read name=read,fd=1,iosize=$readsize
  flowop closefile name=close,fd=1
}

define process name=clients {
  thread name=client,memsize=1m,instances=$nclients {
    flowop making name=make,iters=5
    flowop saving name=save,iters=2
    flowop reading name=read,iters=9
    flowop peeking name=peek
    flowop statfile name=stat,filesetname=share,iters=21
    flowop listdir name=find,filesetname=share,iters=8
    flowop rename name=rename,filesetname=share
    flowop deletefile name=delete,filesetname=share,iters=5
  }
}

run 60
