# A mail server: each thread removes a message, delivers one, appends to one and reads one, and waits until what it wrote
# is stable. The mix is that of Filebench's varmail, after PostMark with several threads.

set $dir=/tmp
set $nfiles=1000
set $nthreads=16
set $meanappend=16k
set $iosize=1m
set $size=cvar(type=gamma,parameters=mean:16384;gamma:1.5)

define fileset name=spool,path=$dir,size=$size,entries=$nfiles,dirwidth=1000000,prealloc=80

define process name=server {
  thread name=mail,instances=$nthreads,memsize=10m {
    flowop deletefile name=expunge,filesetname=spool
    flowop createfile name=deliver,filesetname=spool,fd=1
    flowop appendfilerand name=body,filesetname=spool,iosize=$meanappend,fd=1
    flowop fsync name=stable,fd=1
    flowop closefile name=delivered,fd=1
    flowop openfile name=mailbox,filesetname=spool,fd=1
    flowop readwholefile name=fetch,filesetname=spool,iosize=$iosize,fd=1
    flowop appendfilerand name=mark,filesetname=spool,iosize=$meanappend,fd=1
    flowop fsync name=marked,fd=1
    flowop closefile name=leave,fd=1
    flowop openfile name=message,filesetname=spool,fd=1
    flowop readwholefile name=read,filesetname=spool,iosize=$iosize,fd=1
    flowop closefile name=close,fd=1
  }
}

run 60
