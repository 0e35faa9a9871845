"""fio's keys: which are translated, which change nothing here, and which are refused and why.

Names and defaults are those that ``fio --cmdhelp=all`` and ``fio --enghelp=ENGINE`` of version 3.33 list.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

T = TypeVar("T")

ALIASES: Mapping[str, str] = {
    "readwrite": "rw",
    "blocksize": "bs",
    "blockalign": "ba",
    "blocksize_range": "bsrange",
    "blocksize_unaligned": "bs_unaligned",
    "iodepth_batch_submit": "iodepth_batch",
    "iodepth_batch_complete": "iodepth_batch_complete_min",
    "io_limit": "io_size",
    "fill_fs": "fill_device",
    "fileoffset": "offset",
    "nr_files": "nrfiles",
    "timeout": "runtime",
    "iomem": "mem",
    "ratemin": "rate_min",
    "ratecycle": "rate_cycle",
    "wait_for_previous": "stonewall",
    "threads": "thread",
    "disable_bw": "disable_bw_measurement",
    "ss": "steadystate",
    "ss_dur": "steadystate_duration",
    "ss_ramp": "steadystate_ramp_time",
}
"""Other names of keys."""

BARE = frozenset(
    {"bs_unaligned", "norandommap", "time_based", "verify_only", "exitall", "exitall_on_error", "stonewall"}
    | {"new_group", "thread", "group_reporting", "zero_buffers", "refill_buffers", "hipri", "fixedbufs"}
    | {"registerfiles", "sqthread_poll", "nonvectored", "uncached", "userspace_reap"}
    | {"write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log"}
)
"""Keys that may stand without a value, which is then 1."""

USED: Mapping[str, str] = {
    "name": "name in results, and group of the workers; files are named by the section",
    "rw": "read, write, rw, readwrite, randread, randwrite, randrw, trim, randtrim; `:8k` skips",
    "bs": "bytes per request; `READ,WRITE` where the job does only one of them, or both are alike",
    "bsrange": "multiples of the first size up to the second, with equal chance",
    "bssplit": "sizes and their percentages; those without one share the rest",
    "ba": "what random offsets are multiples of, in place of the smallest size",
    "size": "bytes of the file and of all transfers, or percent of the file",
    "io_size": "bytes of all transfers, or percent of those it would be",
    "filesize": "bytes of each file, used from the offset on; `size` then only limits what is moved",
    "offset": "where in the file the job begins; bytes, or percent of the file there is, rounded up",
    "offset_increment": "added for each further one of `numjobs`",
    "loops": "so many times what it is without",
    "fill_device": "requests go on to the end of the device, or fill the file system",
    "fallocate": "1, native, posix: space of new files is reserved; none, truncate: they have holes",
    "number_ios": "most requests",
    "filename": "one file or several, with `:` between; directories are made",
    "filename_format": "with `$jobname`, `$jobnum` and `$filenum`; its directories are made",
    "directory": "directory of the files; of several, each of `numjobs` has one in turn",
    "nrfiles": "files that a random job chooses its blocks from",
    "file_service_type": "`random` for random jobs on several files, `sequential` for others",
    "ioengine": "see below",
    "iodepth": "most requests in flight; with synchronous engines it is 1, as in fio",
    "direct": "`O_DIRECT`",
    "buffered": "its opposite",
    "sync": "`O_SYNC` (1, sync) or `O_DSYNC` (dsync)",
    "atomic": "each write is stored whole or not at all (`RWF_ATOMIC`), with `direct=1`",
    "runtime": "ends the job; with `ramp_time` counted from its end",
    "steadystate": "the plan's `steady`: `iops`, `bw` or `lat`, or with `_slope`, and a limit",
    "steadystate_duration": "the window that is judged",
    "steadystate_ramp_time": "time before the first sample",
    "steadystate_check_interval": "length of a sample, 1 s or more",
    "latency_target": "searches the greatest depth up to `iodepth` at which requests are so fast",
    "latency_window": "time that a depth is tried for",
    "latency_percentile": "percent of the requests that must be so fast; 100",
    "latency_run": "goes on once the depth is found, and follows the latency",
    "flow": "the job's weight: workers of one `flow_id` get requests in proportion to their weights",
    "flow_id": "which jobs share",
    "flow_sleep": "time that a job waits that is ahead of its share",
    "zonemode": "none; strided, for requests that ascend",
    "zonesize": "bytes of a zone that are moved in a row",
    "zonerange": "bytes that a zone has; `zonesize`",
    "zoneskip": "bytes that are left out behind each zone",
    "random_sequence_stride": "blocks that `sequence` moves on by each time",
    "time_based": "go on until `runtime`, whatever `size` is",
    "startdelay": "time that the job waits before it begins",
    "ramp_time": "time before the measured one, in which the load goes on",
    "thinktime": "a pause, once all requests of the job have completed",
    "thinktime_blocks": "requests between two pauses",
    "exitall": "the job's end ends those that run with it",
    "exit_what": "group and stonewall: those that run with it; all: only where no others come later",
    "wait_for": "the job begins when the workers of that one have ended; both run in one plan",
    "cpuload": "of `cpuio`: percent of a CPU's time that each of `numjobs` takes",
    "cpuchunks": "of `cpuio`: microseconds for which it is busy without a pause; 50000",
    "cpumode": "of `cpuio`: noop looks at the clock, qsort sorts numbers",
    "exit_on_io_done": "of `cpuio`: ends once all jobs that issue requests have ended",
    "program": "of `exec`: the program that is run; needs `--allow-system`",
    "arguments": "of `exec`: split at spaces; `%r` is `runtime`, `%n` the job's name",
    "grace_time": "of `exec`: seconds from SIGTERM to SIGKILL; 1",
    "std_redirect": "of `exec`: prints to NAME.stdout, NAME.stderr (1) or standard error (0)",
    "numjobs": "so many workers",
    "rwmixread": "percentage of reads",
    "rwmixwrite": "percentage of writes",
    "rate_iops": "a `rate` of as many requests of the smallest size",
    "rate": "bytes per second of each worker, at times of their own (open loop)",
    "rate_process": "linear, poisson",
    "random_distribution": "random, zipf, pareto, zoned, zoned_abs, sequence",
    "percentage_random": "what is left of 100 begins where the request before it ended",
    "randseed": "the plan's seed; jobs that run together need the same",
    "norandommap": "blocks are drawn with repetition; without the key each comes once",
    "cpus_allowed": "CPUs of the workers",
    "cpumask": "the same as a number of bits",
    "cpus_allowed_policy": "shared; split gives each of `numjobs` one",
    "nice": "of the workers' threads",
    "prio": "level of the workers' I/O priority, 0 to 7",
    "prioclass": "1 realtime, 2 best-effort, 3 idle",
    "cmdprio_percentage": "percent of the requests with a priority of their own; READ,WRITE",
    "cmdprio_bssplit": "the same by size: SIZE/PERCENT, or SIZE/PERCENT/CLASS/LEVEL",
    "cmdprio_class": "class of these: 1 realtime (default), 2 best-effort, 3 idle",
    "cmdprio": "level of these, 0 to 7",
    "fadvise_hint": "advice on the pattern, through the page cache only",
    "invalidate": "caches are dropped before the jobs (1) or not (0)",
    "overwrite": "new files are written from end to end before the jobs",
    "dedupe_percentage": "the plan's `content`: 100 / (100 - it) blocks for each unique one",
    "buffer_compress_percentage": "the plan's `content`: 100 / (100 - it) times; 5 to 90",
    "refill_buffers": "the plan's `content`: every block is made for its write",
    "verify": "the plan's `verify`, for all jobs that run together",
    "stonewall": "begins another plan, which runs after the ones before",
}
"""What is translated, and into what."""


def _each(names: str, value: T) -> dict[str, T]:
    """The same of several keys."""
    return dict.fromkeys(names.split(), value)


class Accepted(NamedTuple):
    """A key that asks for what is so anyway, or changes nothing that is measured."""

    why: str
    silent: frozenset[str] | None
    """Values of which nothing is said; None: all."""


def _silent(why: str) -> Accepted:
    return Accepted(why, None)


def _noted(why: str, *silent: str) -> Accepted:
    return Accepted(why, frozenset(silent))


_OUTPUT = _silent("says what fio prints")
_FIO_LOG = _noted("no log of fio's is written; --out keeps all intervals", "")
_OF_LOGS = _silent("is about fio's logs")

ACCEPTED: Mapping[str, Accepted] = {
    "description": _silent("is a remark"),
    "new_group": _OUTPUT,
    "group_reporting": _OUTPUT,
    "thread": _silent("workers are threads always"),
    "randrepeat": _noted("the same seed gives the same requests always; vary --seed", "1"),
    "softrandommap": _silent("memory for the map of blocks is had, or the job is refused"),
    "allrandrepeat": _silent("the same seed gives the same requests always"),
    "random_generator": _noted("there is one generator, xoshiro256++", "tausworthe", "tausworthe64"),
    "scramble_buffers": _noted("no two written blocks are alike always", "1"),
    "create_serialize": _silent("files are made before the jobs, not in them"),
    "create_fsync": _silent("files are written back before the jobs, when caches are dropped"),
    "allow_file_create": _noted("files that are missing are made", "1"),
    "openfiles": _noted("all files are open for the whole run"),
    "fixedbufs": _noted("the engine chooses how memory is handed to the kernel", "0"),
    "registerfiles": _noted("the engine chooses how files are handed to the kernel", "0"),
    "nonvectored": _silent("requests go out as plain reads and writes"),
    "userspace_reap": _silent("completions are taken in user space"),
    "mem": _noted("memory comes from anonymous mappings", "malloc", "mmap"),
    "clocksource": _noted("the engine chooses its clock", "cpu", "clock_gettime"),
    "gtod_cpu": _noted("each worker reads the clock itself"),
    "gtod_reduce": _noted("all latencies are measured always", "0"),
    "disable_lat": _noted("all latencies are measured always", "0"),
    "disable_clat": _noted("all latencies are measured always", "0"),
    "disable_slat": _noted("all latencies are measured always", "0"),
    "disable_bw_measurement": _noted("all intervals are kept always", "0"),
    "stats": _noted("all workers are counted always", "1"),
    "continue_on_error": _noted("a failed request is counted and ends no job", "all", "io", "1"),
    "exitall_on_error": _noted("a failed request is counted and ends no job", "0"),
    "error_dump": _noted("failures are counted by their error", "0"),
    "unified_rw_reporting": _OUTPUT,
    "clat_percentiles": _OUTPUT,
    "lat_percentiles": _OUTPUT,
    "slat_percentiles": _OUTPUT,
    "percentile_list": _OUTPUT,
    "significant_figures": _OUTPUT,
    "block_error_percentiles": _OUTPUT,
    "disk_util": _OUTPUT,
    "unit_base": _OUTPUT,
    "write_bw_log": _FIO_LOG,
    "write_lat_log": _FIO_LOG,
    "write_iops_log": _FIO_LOG,
    "write_hist_log": _FIO_LOG,
    **_each(
        "bwavgtime iopsavgtime per_job_logs log_entries log_avg_msec log_hist_msec "
        "log_hist_coarseness log_max_value log_window_value log_offset log_prio "
        "log_compression log_compression_cpus log_store_compressed log_unix_epoch "
        "log_alternate_epoch log_alternate_epoch_clock_id log_issue_time",
        _OF_LOGS,
    ),
    **_each(
        "dedupe_mode dedupe_working_set_percentage dedupe_global",
        _silent("each block is drawn from all contents there are, over all jobs"),
    ),
    "buffer_compress_chunk": _silent("every stretch of a block is as compressible as the next"),
    **_each(
        "do_verify verify_fatal verify_dump verify_async verify_state_save trim_verify_zero",
        _silent("belongs to verify; finds are counted and end nothing, and all is read at the end"),
    ),
    **_each(
        "rate_cycle rate_ignore_thinktime thinktime_blocks_type",
        _silent("belongs to what is refused or exact here"),
    ),
    "thinktime_spin": _noted("a pause sleeps, and takes no CPU time", "0"),
    "ignore_error": _noted("a failed request is counted and ends no job; the status of the run is 1"),
    "io_submit_mode": _noted("requests at a rate are due at times of their own already", "inline"),
    "create_on_open": _noted("files are made before the jobs", "0"),
    **_each(
        "iodepth_batch iodepth_batch_complete_min iodepth_batch_complete_max iodepth_low",
        _noted("up to 8 requests are handed over at once, as they are ready", "0", "1"),
    ),
    **_each(
        "rate_min rate_iops_min",
        _noted("a run that is too slow goes on; the summary says how fast it was", "0"),
    ),
    **_each(
        "numa_cpu_nodes numa_mem_policy",
        _noted("memory lies where the kernel puts it; cpus_allowed chooses the CPUs", "default", "local"),
    ),
    **_each(
        "verify_backlog verify_backlog_batch verify_interval verify_pattern experimental_verify",
        _noted(
            "what is read is verified when it is read, and all of it at the end, by marks of our own", "0"
        ),
    ),
}
"""What is accepted without being translated."""


class Refused(NamedTuple):
    """A key that cannot be honoured, unless its value asks for nothing."""

    why: str
    nothing: frozenset[str]


def _refused(why: str, *nothing: str) -> Refused:
    return Refused(why, frozenset(nothing))


_FLUSHES = _refused("flushes among the requests cannot be drawn; sync=dsync makes every write stable", "0")
_CHECKS = _refused("blocks are verified as verify= says, and in no other way", "0")
_THINK = _refused("a pause has one length, that of thinktime", "0")
_REPLAYS = _refused("traces are replayed by loadstone replay", "", "0")
_ZONES = _refused("zoned devices are not known here", "0", "none")
_DISCARDS = _refused("discards cannot be drawn", "0")
_HOST = _refused("is about the host, which is not changed; do it around the run", "", "0")
_POLLING = _refused("is a way to submit or complete that the engine does not have", "0")

REFUSED: Mapping[str, Refused] = {
    "rw_sequencer": _refused("belongs to rw=...:N, which is refused", "sequential"),
    "bs_unaligned": _refused("offsets are multiples of the smallest size", "0"),
    "bs_is_seq_rand": _refused("read and write sizes cannot mean sequential and random", "0"),
    "fsync": _FLUSHES,
    "fdatasync": _FLUSHES,
    "write_barrier": _FLUSHES,
    "sync_file_range": _FLUSHES,
    "end_fsync": _refused("nothing is flushed at the end; sync=dsync makes every write stable", "0"),
    "fsync_on_close": _refused("nothing is flushed at the end; sync=dsync makes every write stable", "0"),
    "thinktime_iotime": _THINK,
    "thinkcycles": _THINK,
    "max_latency": _refused("no single request ends a run by its latency; see latency_target", "0"),
    "zero_buffers": _refused("written data is random", "0"),
    "buffer_pattern": _refused("written data is random"),
    "unlink": _refused("files stay where they are; remove them after the run", "0"),
    "unlink_each_loop": _refused("files stay where they are; remove them after the run", "0"),
    "lockfile": _refused("files are not locked", "none"),
    "unique_filename": _refused("is for fio's network clients", "0", "1"),
    "opendir": _refused("name the files"),
    "file_append": _refused("requests begin inside the file", "0"),
    "offset_align": _refused("offsets are multiples of the smallest size", "0"),
    "serialize_overlap": _refused("requests that overlap may be in flight together", "0"),
    "create_only": _refused("files are made for a run", "0"),
    "pre_read": _refused("files are not read before; invalidate=0 keeps what is cached", "0"),
    "allow_mounted_write": _refused("a mounted device is never written", "0"),
    "write_hint": _refused("writes carry no hint of their lifetime", "none"),
    "lockmem": _HOST,
    "exec_prerun": _refused("commands are not run; run them before", ""),
    "exec_postrun": _refused("commands are not run; run them after", ""),
    "ioscheduler": _HOST,
    "cmdprio_hint": _refused("write the hint in cmdprio_bssplit, as SIZE/PERCENT/CLASS/LEVEL/HINT", "0"),
    **_each("spr_op spr_num_regions spr_cs", _refused("belongs to sprandom")),
    "sprandom": _refused("SSDs are not preconditioned by regions; write all with rw=randwrite, loops=2", "0"),
    "cgroup": _refused("put the whole command into a cgroup, as with systemd-run"),
    "cgroup_nodelete": _refused("belongs to cgroup", "0"),
    "cgroup_weight": _refused("belongs to cgroup"),
    "uid": _refused("start the command as that user"),
    "gid": _refused("start the command with that group"),
    "kb_base": _refused("sizes are those of kb_base=1024; write them so", "1024"),
    "hugepage-size": _refused("memory is not in huge pages"),
    "thp": _refused("memory is not in huge pages", "0"),
    "profile": _refused("write the job out"),
    **_each(
        "verify_only verify_offset verify_state_load verify_header_seed verify_write_sequence",
        _CHECKS,
    ),
    **_each("trim_percentage trim_backlog trim_backlog_batch num_range", _DISCARDS),
    **_each(
        "write_iolog read_iolog read_iolog_chunked replay_no_stall replay_redirect "
        "replay_scale replay_align replay_time_scale replay_skip merge_blktrace_file "
        "merge_blktrace_scalars merge_blktrace_iters",
        _REPLAYS,
    ),
    **_each(
        "zonecapacity read_beyond_wp max_open_zones "
        "job_max_open_zones ignore_zone_limits zone_reset_threshold zone_reset_frequency",
        _ZONES,
    ),
    **_each(
        "hipri hipri_percentage sqthread_poll sqthread_poll_cpu uncached nowait force_async cmd_type",
        _POLLING,
    ),
}
"""What is refused, and why."""

NO_CHECKSUM = frozenset({"0", "none", "null"})
"""Values of ``verify`` that ask for nothing."""

CHECKSUMS = frozenset(
    {"crc7", "crc16", "crc32", "crc32c", "crc32c-intel", "crc64", "md5", "meta", "xxhash"}
    | {"pattern", "pattern_hdr"}
) | {*("sha1", "sha256", "sha512", "sha3-224", "sha3-256", "sha3-384", "sha3-512")}
"""Those that ask whether blocks are what was written."""

ENGINES: Mapping[str, tuple[str, bool]] = {
    "sync": ("sync", True),
    "psync": ("sync", True),
    "vsync": ("sync", True),
    "pvsync": ("sync", True),
    "pvsync2": ("sync", True),
    "libaio": ("io_uring", False),
    "io_uring": ("io_uring", False),
    "posixaio": ("sync", False),
    "mmap": ("mmap", True),
    "null": ("null", False),
    "cpp_null": ("null", False),
    "falloc": ("allocate", True),
    "ftruncate": ("truncate", True),
    "filecreate": ("create", True),
    "filestat": ("stat", True),
    "filedelete": ("remove", True),
    "dircreate": ("mkdir", True),
    "dirstat": ("stat directories", True),
    "dirdelete": ("rmdir", True),
    "cpuio": ("cpu", True),
    "exec": ("program", True),
}
"""Backend of each of fio's engines, and whether it has one request in flight whatever ``iodepth`` is."""

BY_NAME = frozenset({"create", "stat", "remove", "mkdir", "stat directories", "rmdir"})
"""Those of them that call files or directories by name and move no bytes."""

OF_SPACE = frozenset({"allocate", "truncate"})
"""Those that change how much space files have and move no bytes."""

IDLE = frozenset({"cpu", "program"})
"""Those that issue no requests."""

ATOMIC_ENGINES = ("pvsync2", "libaio", "io_uring")
"""Engines of fio's whose writes can be atomic."""

OTHER_ENGINES: Mapping[str, str] = {
    "io_uring_cmd": "commands to devices are not performed; use io_uring",
    "page_fault": "touches memory and no storage",
    "e4defrag": "moves blocks of ext4; run e4defrag(8) itself",
    **_each(
        "splice sg mtd dev-dax libpmem pmemblk libzbc external",
        "cannot be performed; use psync, libaio or io_uring",
    ),
    **_each(
        "net netsplice rdma rados rbd http gfapi gfapi_async libhdfs nbd nfs libiscsi "
        "ime_psync ime_psyncv ime_aio dfs xnvme libblkio libcufile libhipfile",
        "goes over a network or to a library; use a file or a device",
    ),
}
"""Engines of fio's that are refused, and why."""

OF_ENGINES = frozenset(
    _each(
        "rocm_io donorname inplace hostname port listen protocol nodelay pingpong interface ttl window_size "
        "mss netdev verb bindname clientname clustername pool cont rbdname conf busy_poll touch_objects "
        "namespace volume "
        "brick chunk_size obj_class svcl hdfsdirectory namenode single_instance hdfs_use_direct https "
        "http_host http_mode http_verbose http_user http_pass http_object_mode http_s3_key http_s3_keyid "
        "http_s3_region http_s3_security_token http_s3_sse_customer_key http_s3_sse_customer_algorithm "
        "http_s3_storage_class http_swift_auth_token nfs_url uri gpu_dev_ids gpu_dev_id cuda_io "
        "xnvme_async xnvme_sync xnvme_admin xnvme_mem xnvme_dev_nsid xnvme_iovec xnvme_dev_subnqn "
        "libblkio_driver libblkio_path libblkio_pre_connect_props libblkio_num_entries "
        "libblkio_queue_size libblkio_pre_start_props libblkio_vectored libblkio_write_zeroes_on_trim "
        "libblkio_wait_mode libblkio_force_enable_completion_eventfd sg_write_mode stream_id readfua "
        "writefua skip_bad write_mode deallocate fdp fdp_pli fdp_pli_select dataplacement plids "
        "plid_select dp_scheme md_per_io_size pi_act pi_chk apptag apptag_mask",
        None,
    )
)
"""Keys of engines that are refused."""

KEYS = frozenset(USED) | frozenset(ACCEPTED) | frozenset(REFUSED)
"""All keys by their first names."""
