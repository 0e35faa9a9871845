# micro-readlink: symbolic links read
#
# One thread makes a file and a symbolic link to it, reads the link $count times, and removes both. There is one thread
# only, as threads that share a tree would not know which of its names are links.
#
# From: our own numbers; Filebench has no such flowop.
# Mix: createfile 1, closefile 1, symlink 1, readlink 1000, deletefile 2
# Scale: none
# $count: reads for each link

set $dir=/tmp
set $count=1000

define fileset name=files,path=$dir,size=0,entries=2,dirwidth=20

define process name=micro {
  thread name=micro,memsize=1m {
    flowop createfile name=create,filesetname=files,fd=1,indexed=0
    flowop closefile name=close,fd=1
    flowop symlink name=symlink,filesetname=files
    flowop readlink name=readlink,filesetname=files,indexed=1,iters=$count
    flowop deletefile name=delete,filesetname=files,iters=2
  }
}

run 60
