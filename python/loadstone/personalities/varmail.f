# varmail: a mail server that keeps one file per message
#
# Each thread removes a message, delivers one, marks one by an append and reads one. What was delivered or marked is
# flushed before the thread goes on, so the rate follows how fast a file system can make small files stable. All messages
# lie in one directory.
#
# From: Filebench's varmail (1.4 and 1.5), its flowops, order and numbers: a PostMark with several threads (Kasampalis,
#   "Copy On Write Based File Systems", IMM-MSC-2010-63, section 4.2.4), and with fsync. Sizes of messages are drawn around
#   their mean (gamma, shape 1.5), as in 1.4; in 1.5 all are alike.
# Mix: deletefile 1, createfile 1, appendfilerand 2, fsync 2, closefile 3, openfile 2, readwholefile 2
# Scale: nfiles
# $nfiles: messages there may be; four fifths of them are there at the start
# $meandirwidth: mean number of entries of a directory; this many is one directory for all
# $meanfilesize: mean bytes of a message
# $filesize: bytes of each message, drawn around their mean
# $nthreads: deliveries and readers at once
# $iosize: bytes of a read
# $meanappendsize: most bytes of an append; their mean is half of it

set $dir=/tmp
set $nfiles=1000
set $meandirwidth=1000000
set $meanfilesize=16k
set $filesize=randvar(type=gamma,mean=$meanfilesize,gamma=1500)
set $nthreads=16
set $iosize=1m
set $meanappendsize=16k

define fileset name=spool,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=80

define process name=server {
  thread name=mail,memsize=10m,instances=$nthreads {
    flowop deletefile name=expunge,filesetname=spool
    flowop createfile name=deliver,filesetname=spool,fd=1
    flowop appendfilerand name=body,fd=1,iosize=$meanappendsize
    flowop fsync name=stable,fd=1
    flowop closefile name=delivered,fd=1
    flowop openfile name=mailbox,filesetname=spool,fd=1
    flowop readwholefile name=fetch,fd=1,iosize=$iosize
    flowop appendfilerand name=mark,fd=1,iosize=$meanappendsize
    flowop fsync name=marked,fd=1
    flowop closefile name=leave,fd=1
    flowop openfile name=message,filesetname=spool,fd=1
    flowop readwholefile name=read,fd=1,iosize=$iosize
    flowop closefile name=close,fd=1
  }
}

run 60
