# mail-server-like: a mail server that keeps all messages in a few large database files
#
# Threads read and write pages of large files by chance, two writes to a read, past the page cache. It stands for the mail
# database of a groupware server; varmail stands for one file per message.
#
# From: Tarasov's thesis (FSL-13-04, 2013, table 5.4): 24 GB in 120 files, one read to two writes, no calls on names, 32 KB
#   a request, estimated there for Microsoft's JetStress. Not in the table and our own choice: the number of threads, that
#   places are drawn uniformly, and O_DIRECT, as JetStress is made to test disks; -D directio=0 uses the page cache.
# Mix: read 1, write 2
# Scale: filesize
# $nfiles: files of the database
# $filesize: bytes of each file
# $iosize: bytes of a request
# $nthreads: requests at once
# $directio: 1: past the page cache (O_DIRECT), in multiples of 4 KiB

set $dir=/tmp
set $nfiles=120
set $filesize=200m
set $iosize=32k
set $nthreads=8
set $directio=1

define fileset name=database,path=$dir,size=$filesize,entries=$nfiles,dirwidth=20,prealloc=100,reuse

define process name=server {
  thread name=mail,memsize=1m,instances=$nthreads {
    flowop read name=read,filesetname=database,iosize=$iosize,random,opennext,directio=$directio
    flowop write name=write,filesetname=database,iosize=$iosize,random,opennext,directio=$directio,iters=2
  }
}

run 60
