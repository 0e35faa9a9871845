# mongo-like: the life of many small files, from create to delete
#
# Each thread makes a file and copies another; appends to one, changes a part of one, overwrites one whole and reads one;
# looks at one, renames one and removes two. All is done with files chosen by chance, and nothing is flushed. The many small
# files are what file systems with packed tails were made for.
#
# From: Mongo, the benchmark of ReiserFS and Reiser4 (Namesys, mongo.pl): its phases create, copy, append, modify,
#   overwrite, read, stats, rename and delete, and the FILE_SIZE of 10,000 and BYTES of 250,000,000 of its documentation.
#   Changed: phases are not done one after the other to all files, but in turn to single files, so that any duration is
#   steady; sizes are uniform up to FILE_SIZE, without the few larger files of Mongo's gamma; how large appends and
#   modifications are is our own choice. Filebench's mongo is another load: append, read, delete.
# Mix: createfile 2, writewholefile 3, closefile 7, openfile 5, readwholefile 2, appendfile 1, write 1, statfile 1,
#   rename 1, deletefile 2
# Scale: nfiles
# $nfiles: files there may be; four fifths of them are there at the start
# $meandirwidth: mean number of entries of a directory
# $maxfilesize: most bytes of a file, Mongo's FILE_SIZE
# $filesize: bytes of each file; all sizes up to this alike
# $nthreads: threads
# $iosize: bytes of a transfer of whole files
# $appendsize: bytes of an append
# $modifysize: bytes changed within a file

set $dir=/tmp
set $nfiles=50000
set $meandirwidth=100
set $maxfilesize=10000
set $filesize=cvar(type=uniform,parameters="lower:1;upper:$maxfilesize")
set $nthreads=1
set $iosize=64k
set $appendsize=1k
set $modifysize=512

define fileset name=tree,path=$dir,size=$filesize,entries=$nfiles,dirwidth=$meandirwidth,prealloc=80

define process name=mongo {
  thread name=mongo,memsize=1m,instances=$nthreads {
    flowop createfile name=create,filesetname=tree,fd=1
    flowop writewholefile name=created,fd=1,iosize=$iosize
    flowop closefile name=create-close,fd=1
    flowop openfile name=copy-from,filesetname=tree,fd=1
    flowop readwholefile name=copy-read,fd=1,iosize=$iosize
    flowop createfile name=copy-to,filesetname=tree,fd=2
    flowop writewholefile name=copy-write,srcfd=1,fd=2,iosize=$iosize
    flowop closefile name=copied,fd=2
    flowop closefile name=copy-done,fd=1
    flowop openfile name=append-open,filesetname=tree,fd=1
    flowop appendfile name=append,fd=1,iosize=$appendsize
    flowop closefile name=append-close,fd=1
    flowop openfile name=modify-open,filesetname=tree,fd=1
    flowop write name=modify,fd=1,iosize=$modifysize,random
    flowop closefile name=modify-close,fd=1
    flowop openfile name=overwrite-open,filesetname=tree,fd=1
    flowop writewholefile name=overwrite,fd=1,iosize=$iosize
    flowop closefile name=overwrite-close,fd=1
    flowop openfile name=read-open,filesetname=tree,fd=1
    flowop readwholefile name=read,fd=1,iosize=$iosize
    flowop closefile name=read-close,fd=1
    flowop statfile name=stat,filesetname=tree
    flowop rename name=rename,filesetname=tree
    flowop deletefile name=delete,filesetname=tree,iters=2
  }
}

run 60
