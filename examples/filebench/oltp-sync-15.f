# The same database as oltp-sync.f, in the spelling of Filebench 1.5: no filesizegamma and cached, and a run.

set $dir=/tmp
set $iosize=2k
set $nshadows=200
set $ndbwriters=10
set $usermode=200000
set $filesize=300m
set $memperthread=1m
set $logfilesize=10m
set $nfiles=10
set $nlogfiles=1
set $runtime=30

define fileset name=datafiles,path=$dir,size=$filesize,entries=$nfiles,dirwidth=1024,prealloc,reuse
define fileset name=logfile,path=$dir,size=$logfilesize,entries=$nlogfiles,dirwidth=1024,prealloc,reuse

define process name=lgwr {
  thread name=lgwr,memsize=$memperthread,useism {
    flowop write name=lg-write,filesetname=logfile,iosize=256k,random,dsync
    flowop semblock name=lg-block,value=3200,highwater=1000
  }
}

define process name=dbwr,instances=$ndbwriters {
  thread name=dbwr,memsize=$memperthread,useism {
    flowop write name=dbwrite-a,filesetname=datafiles,iosize=$iosize,random,iters=100,opennext,dsync
    flowop hog name=dbwr-hog,value=10000
    flowop semblock name=dbwr-block,value=1000,highwater=2000
  }
}

define process name=shadow,instances=$nshadows {
  thread name=shadow,memsize=$memperthread,useism {
    flowop read name=shadowread,filesetname=datafiles,iosize=$iosize,random,opennext
    flowop hog name=shadowhog,value=$usermode
    flowop sempost name=shadow-post-lg,value=1,target=lg-block,blocking
    flowop sempost name=shadow-post-dbwr,value=1,target=dbwr-block,blocking
    flowop eventlimit name=random-rate
  }
}

run $runtime
