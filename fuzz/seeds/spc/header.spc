ASU,LBA,Size,Op,Time
0,1,512,R,0.1
