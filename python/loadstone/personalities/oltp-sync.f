# oltp-sync: the database of oltp, with synchronous writes and a database of 3 GB
#
# As oltp, but a writer waits for each of its writes, so nothing depends on the system's asynchronous writes. No file is
# made, removed or made longer, which is why it was chosen to find out what snapshots cost: all that is written was in the
# snapshot before. What making the files left in the page cache is dropped.
#
# From: the thesis on snapshots of ZFS and Hammer (section 5.5.2, listings 5.3, 5.4 and B.7), which changed Filebench 1.4's
#   oltp so that it runs on DragonFly: write in place of aiowrite, and no aiowait. Ten files of 300 MB were twice the
#   memory there (--size 2x-ram), and a run took ten minutes. Its 512 KiB of memory for a thread were misspelt, so
#   Filebench took 1 MiB.
# Mix: logwriter: write 1; dbwriter: write 100; session: read 1
# Scale: filesize
# $runtime: seconds of the run
# $iosize: bytes of a block of the database
# $nshadows: sessions
# $ndbwriters: database writers
# $usermode: stores to memory that a session does for each block; they are its own work
# $filesize: bytes of a file of the database
# $memperthread: bytes of memory of a thread
# $workingset: bytes of each file that are used; 0: all
# $cached: 1: what making the files left in the page cache stays there
# $logfilesize: bytes of a log
# $nfiles: files of the database
# $nlogfiles: logs
# $directio: 1: past the page cache (O_DIRECT), in multiples of 4 KiB

set $dir=/tmp
set $runtime=600
set $iosize=2k
set $nshadows=200
set $ndbwriters=10
set $usermode=200000
set $filesize=300m
set $memperthread=1m
set $workingset=0
set $cached=0
set $logfilesize=10m
set $nfiles=10
set $nlogfiles=1
set $directio=0

define fileset name=data,path=$dir,size=$filesize,filesizegamma=0,entries=$nfiles,dirwidth=1024,prealloc=100,cached=$cached,reuse
define fileset name=log,path=$dir,size=$logfilesize,filesizegamma=0,entries=$nlogfiles,dirwidth=1024,prealloc=100,cached=$cached,reuse

define process name=logwriter {
  thread name=logwriter,memsize=$memperthread {
    flowop write name=log-write,filesetname=log,iosize=256k,random,directio=$directio,dsync
    flowop semblock name=log-block,value=3200,highwater=1000
  }
}

define process name=dbwriter,instances=$ndbwriters {
  thread name=dbwriter,memsize=$memperthread {
    flowop write name=data-write,filesetname=data,iosize=$iosize,workingset=$workingset,random,iters=100,opennext,directio=$directio,dsync
    flowop hog name=data-work,value=10000
    flowop semblock name=data-block,value=1000,highwater=2000
  }
}

define process name=session,instances=$nshadows {
  thread name=session,memsize=$memperthread {
    flowop read name=block-read,filesetname=data,iosize=$iosize,workingset=$workingset,random,opennext,directio=$directio
    flowop hog name=work,value=$usermode
    flowop sempost name=post-log,value=1,target=log-block,blocking
    flowop sempost name=post-data,value=1,target=data-block,blocking
    flowop eventlimit name=limit
  }
}

run $runtime
