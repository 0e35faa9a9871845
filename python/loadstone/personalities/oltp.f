# oltp: a database with many sessions, asynchronous writers and a log
#
# Sessions (shadows) read single blocks by chance, work on them, and hand on what is to be written: after 1,000 posts a
# database writer writes 100 blocks, after 3,200 the log writer writes one large one. Writes are asynchronous and stable
# when they end (O_SYNC). Sessions stop where writers are too far behind.
#
# From: Filebench's oltp (1.5), its flowops, order and numbers. It is modelled on Oracle 9i (the thesis on snapshots of ZFS
#   and Hammer, section 4.3.5). Tarasov's thesis (FSL-13-04, 2013, table 5.4) has it as a database of 2 GB in ten files:
#   -D filesize=200m.
# Mix: logwriter: aiowrite 1, aiowait 1; dbwriter: aiowrite 100, aiowait 1; session: read 1
# Scale: filesize
# $eventrate: reads per second that all sessions together keep to; 0: as fast as they can
# $runtime: seconds of the run
# $iosize: bytes of a block of the database
# $nshadows: sessions
# $ndbwriters: database writers
# $usermode: stores to memory that a session does for each block; they are its own work
# $filesize: bytes of a file of the database
# $memperthread: bytes of memory of a thread
# $workingset: bytes of each file that are used; 0: all
# $logfilesize: bytes of a log
# $nfiles: files of the database
# $nlogfiles: logs
# $directio: 1: past the page cache (O_DIRECT), in multiples of 4 KiB

set $dir=/tmp
set $eventrate=0
set $runtime=60
set $iosize=2k
set $nshadows=200
set $ndbwriters=10
set $usermode=200000
set $filesize=10m
set $memperthread=1m
set $workingset=0
set $logfilesize=10m
set $nfiles=10
set $nlogfiles=1
set $directio=0

eventgen rate=$eventrate

define fileset name=data,path=$dir,size=$filesize,entries=$nfiles,dirwidth=1024,prealloc=100,reuse
define fileset name=log,path=$dir,size=$logfilesize,entries=$nlogfiles,dirwidth=1024,prealloc=100,reuse

define process name=logwriter {
  thread name=logwriter,memsize=$memperthread {
    flowop aiowrite name=log-write,filesetname=log,iosize=256k,random,directio=$directio,dsync
    flowop aiowait name=log-wait
    flowop semblock name=log-block,value=3200,highwater=1000
  }
}

define process name=dbwriter,instances=$ndbwriters {
  thread name=dbwriter,memsize=$memperthread {
    flowop aiowrite name=data-write,filesetname=data,iosize=$iosize,workingset=$workingset,random,iters=100,opennext,directio=$directio,dsync
    flowop hog name=data-work,value=10000
    flowop semblock name=data-block,value=1000,highwater=2000
    flowop aiowait name=data-wait
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
