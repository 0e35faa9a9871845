# videoserver: streams of video at a fixed rate, while old videos are replaced
#
# Many threads each play one of the videos that are watched, from begin to end and again, in large reads; all together
# read no faster than the rate. One thread replaces a video that nobody watches by a new one, and then waits. The question
# is not how fast it goes but whether the rate is held, and how late a stream's worst read is.
#
# From: Filebench's videoserver (1.4 and 1.5), its flowops, order and numbers. They ask for 1.3 TiB: 32 videos that are
#   watched and half of 194 others, of 10 GiB each; give --size.
# Mix: writer: deletefile 1, createfile 1, writewholefile 1, closefile 1; streams: read 1
# Scale: filesize
# $eventrate: MiB per second that all streams read together; 0: as fast as they can
# $filesize: bytes of a video
# $nthreads: streams
# $numactivevids: videos that are watched
# $numpassivevids: other videos there may be; half of them are there at the start
# $reuseit: whether videos of an earlier run are kept
# $readiosize: bytes of a read
# $writeiosize: bytes of a write
# $repintval: seconds between two new videos

set $dir=/tmp
set $eventrate=96
set $filesize=10g
set $nthreads=48
set $numactivevids=32
set $numpassivevids=194
set $reuseit=false
set $readiosize=256k
set $writeiosize=1m
set $repintval=10

eventgen rate=$eventrate

define fileset name=watched,path=$dir,size=$filesize,entries=$numactivevids,dirwidth=4,prealloc,paralloc,reuse=$reuseit
define fileset name=others,path=$dir,size=$filesize,entries=$numpassivevids,dirwidth=20,prealloc=50,paralloc,reuse=$reuseit

define process name=writer {
  thread name=writer,memsize=10m {
    flowop deletefile name=remove,filesetname=others
    flowop createfile name=create,filesetname=others,fd=1
    flowop writewholefile name=write,fd=1,iosize=$writeiosize
    flowop closefile name=close,fd=1
    flowop delay name=pause,value=$repintval
  }
}

define process name=streams {
  thread name=stream,memsize=10m,instances=$nthreads {
    flowop read name=play,filesetname=watched,iosize=$readiosize
    flowop bwlimit name=rate,target=play
  }
}

run 60
