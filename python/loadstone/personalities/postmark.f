# postmark: mail, news and web commerce: many small files that do not live long
#
# A pool of small files, and transactions on it. Each transaction is two choices by chance: a file is read whole or
# appended to, and a file is made or removed. It ends by itself, when all transactions are done. The 500 of 1997 take an
# instant; -D nfiles=20000 -D transactions=200000 is what Auto-pilot takes.
#
# From: Katcher, "PostMark: A New File System Benchmark" (NetApp TR3022, 1997), its parameters and defaults: 500 files of
#   500 to 10,000 bytes (9.77 KB), 500 transactions, biases of 5 and 5, one directory, one thread. Its blocks of 512 bytes
#   go through the buffer of the C library, which asks the system for 4 KiB; -D iosize=512 is PostMark unbuffered. What was
#   changed: the pool is made before the run, without being timed, and its removal is no part of it; it has $nfiles at the
#   start only on average; an append may make a file longer than $highsize.
# Mix: openfile 500, readwholefile 250, closefile 750, appendfilerand 250, createfile 250, writewholefile 250,
#   deletefile 250
# Scale: nfiles
# $nfiles: files in the pool at the start, on average
# $nnames: names there are; the run ends where all or none of them are taken
# $transactions: transactions of a thread
# $readbias: how many of ten transactions read; the others append
# $createbias: how many of ten transactions make a file; the others remove one
# $lowsize: least bytes of a file
# $highsize: most bytes of a file, and of an append
# $filesize: bytes of each file; all sizes between these two alike
# $iosize: bytes of a transfer
# $meandirwidth: mean number of entries of a directory; this many is one directory for all
# $nthreads: threads
# $readshare: percent of transactions that read; follows from its bias, as the next three do
# $createshare: percent of transactions that make a file
# $appendshare: percent that append
# $deleteshare: percent that remove one
# $reads: 1 where a transaction reads, else 0; drawn from the same numbers as $appends
# $appends: 1 where it appends
# $creates: 1 where it makes a file; drawn from the same numbers as $deletes
# $deletes: 1 where it removes one

set $dir=/tmp
set $nfiles=500
set $nnames=$nfiles*2
set $transactions=500
set $readbias=5
set $createbias=5
set $lowsize=500
set $highsize=10000
set $filesize=cvar(type=uniform,parameters="lower:$lowsize;upper:$highsize")
set $iosize=4k
set $meandirwidth=1000000
set $nthreads=1
set $readshare=$readbias*10
set $createshare=$createbias*10
set $appendshare=100-$readshare
set $deleteshare=100-$createshare

# Two tables with one seed: exactly one of the two is 1.
set $reads=randvar(type=tabular,seed=1,randtable={{$readshare,1,1},{$appendshare,0,0}})
set $appends=randvar(type=tabular,seed=1,randtable={{$readshare,0,0},{$appendshare,1,1}})
set $creates=randvar(type=tabular,seed=2,randtable={{$createshare,1,1},{$deleteshare,0,0}})
set $deletes=randvar(type=tabular,seed=2,randtable={{$createshare,0,0},{$deleteshare,1,1}})

set mode quit alldone

define fileset name=pool,path=$dir,size=$filesize,entries=$nnames,dirwidth=$meandirwidth,prealloc=50

define flowop name=reading {
  flowop openfile name=open,filesetname=pool,fd=1
  flowop readwholefile name=read,fd=1,iosize=$iosize
  flowop closefile name=close,fd=1
}

define flowop name=appending {
  flowop openfile name=open,filesetname=pool,fd=1
  flowop appendfilerand name=append,fd=1,iosize=$highsize
  flowop closefile name=close,fd=1
}

define flowop name=creating {
  flowop createfile name=create,filesetname=pool,fd=1
  flowop writewholefile name=write,fd=1,iosize=$iosize
  flowop closefile name=close,fd=1
}

define flowop name=transaction {
  flowop reading name=read,iters=$reads
  flowop appending name=append,iters=$appends
  flowop creating name=create,iters=$creates
  flowop deletefile name=delete,filesetname=pool,iters=$deletes
}

define process name=postmark {
  thread name=client,memsize=10m,instances=$nthreads {
    flowop transaction name=t,iters=$transactions
    flowop finishoncount name=done,value=1
  }
}

run
