//! The table of fio's options: which are honoured, which cannot change the I/O, which are refused.
//!
//! It holds every option of fio 3.33 and its shared engines, and those of later versions for data
//! placement. `docs/fio-jobs.md` shows it.

use dovetail_block::Lifetime;

use super::block_size::BlockSizes;
use super::distribution::Distribution;
use super::pattern::Pattern;
use super::settings::{
    BLOCK_BYTES_MAX, Engine, ExitWhat, Fallocate, Generator, Percentiles, Service, Settings,
    SyncWrites, verify,
};
use super::value::{Counts, Expected, Extent, NS_PER_S, NS_PER_US, Value};

/// An option of fio.
#[derive(Clone, Copy)]
pub struct JobOption {
    /// fio's first name for it.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// Effect here, in a few words; of a refused option, what to do instead. Empty if there is
    /// nothing to say.
    pub about: &'static str,
    /// It may stand without a value, and is 1 then.
    pub bare: bool,
    effect: Action,
}

impl std::fmt::Debug for JobOption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Effect of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It does what it does in fio.
    Honoured,
    /// It cannot change the I/O: accepted, and only shown in the results.
    None,
    /// It would change the I/O, or ask for output that is not made: an error, but for values that
    /// switch it off.
    Refused,
}

type Set = fn(&mut Settings, Value<'_>) -> Result<(), Expected>;

#[derive(Clone, Copy)]
enum Action {
    Set(Set),
    Nothing,
    /// Refused unless the value is one of these.
    Refuse(&'static [&'static str]),
}

/// Reason why an option was not taken.
pub(super) enum Rejected {
    Value(Expected),
    Unsupported,
}

impl JobOption {
    /// Effect of the option.
    pub const fn effect(&self) -> Effect {
        match self.effect {
            Action::Set(_) => Effect::Honoured,
            Action::Nothing => Effect::None,
            Action::Refuse(_) => Effect::Refused,
        }
    }

    /// Values with which a refused option is accepted, since they switch it off.
    pub const fn harmless_values(&self) -> &'static [&'static str] {
        match self.effect {
            Action::Refuse(values) => values,
            Action::Set(_) | Action::Nothing => &[],
        }
    }

    pub(super) fn apply(&self, settings: &mut Settings, value: Value<'_>) -> Result<(), Rejected> {
        match self.effect {
            Action::Set(set) => set(settings, value).map_err(Rejected::Value),
            Action::Nothing => Ok(()),
            Action::Refuse(harmless) if harmless.contains(&value.text) => Ok(()),
            Action::Refuse(_) => Err(Rejected::Unsupported),
        }
    }

    /// Advice for those who give a refused option.
    const fn instead(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    const fn aka(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }
}

/// The option of this name or alias. fio knows no other case than the small one.
pub(super) fn find(name: &str) -> Option<&'static JobOption> {
    OPTIONS.iter().find(|option| option.name == name || option.aliases.contains(&name))
}

const fn set(name: &'static str, about: &'static str, set: Set) -> JobOption {
    JobOption { name, aliases: &[], about, bare: false, effect: Action::Set(set) }
}

/// One that may stand alone.
const fn flag(name: &'static str, about: &'static str, set: Set) -> JobOption {
    JobOption { name, aliases: &[], about, bare: true, effect: Action::Set(set) }
}

const fn inert(name: &'static str) -> JobOption {
    JobOption { name, aliases: &[], about: "", bare: false, effect: Action::Nothing }
}

const fn inert_flag(name: &'static str) -> JobOption {
    JobOption { name, aliases: &[], about: "", bare: true, effect: Action::Nothing }
}

const fn refused(name: &'static str, harmless: &'static [&'static str]) -> JobOption {
    JobOption { name, aliases: &[], about: "", bare: false, effect: Action::Refuse(harmless) }
}

const fn refused_flag(name: &'static str, harmless: &'static [&'static str]) -> JobOption {
    JobOption { bare: true, ..refused(name, harmless) }
}

/// Counts that have no natural end: so many stand for all there may be (assumed).
const COUNT_MAX: u64 = 1 << 40;
const NONE_OR_MORE: Counts =
    Counts { range: 0..=COUNT_MAX, expected: "a number from 0 to 1099511627776" };
const ONE_OR_MORE: Counts =
    Counts { range: 1..=COUNT_MAX, expected: "a number from 1 to 1099511627776" };
const FILES: Counts = Counts { range: 1..=FILES_MAX, expected: "a number from 1 to 1048576" };
const DEPTHS: Counts = Counts { range: 1..=65536, expected: "a number from 1 to 65536" };
const DEPTHS_OR_NONE: Counts = Counts { range: 0..=65536, expected: "a number from 0 to 65536" };
const THREADS: Counts = Counts { range: 1..=THREADS_MAX, expected: "a number from 1 to 4096" };

/// Every option, in the order of fio's manual.
pub static OPTIONS: &[JobOption] = &[
    set("name", "name of the job in results and files", |s, v| {
        s.name = Some(v.text.to_owned());
        Ok(())
    }),
    set("description", "shown in the results", |s, v| {
        s.description = Some(v.text.to_owned());
        Ok(())
    }),
    set("kb_base", "1024 or 1000: what `k` means in this section", |s, v| {
        s.kilo = match v.text {
            "1024" => 1024,
            "1000" => 1000,
            _ => return Err("1024 or 1000"),
        };
        Ok(())
    }),
    set("filename", "files by name, separated by `:`; jobs that name the same share it", |s, v| {
        s.filenames = names(v)?;
        Ok(())
    }),
    set(
        "directory",
        "folder of the files; several, separated by `:`, are taken in turn by the clones of \
         `numjobs`; with `filename` all take the first",
        |s, v| {
            s.directory = names(v)?;
            Ok(())
        },
    ),
    set("filename_format", "`$jobname`, `$jobnum` and `$filenum`", |s, v| {
        if v.text.is_empty() {
            return Err("a pattern such as $jobname.$jobnum.$filenum");
        }
        s.filename_format = v.text.to_owned();
        Ok(())
    }),
    set("rw", "all forms, and `:N`", |s, v| Pattern::parse(v).map(|p| s.pattern = p))
        .aka(&["readwrite"]),
    set("rw_sequencer", "", |s, v| {
        s.identical = one_of(v, "sequential", "identical", "sequential or identical")?;
        Ok(())
    }),
    set("bs", "gives way to `bsrange` and `bssplit`, wherever they stand, as in fio", |s, v| {
        let old = s.blocks.each_ref().map(|sizes| sizes.min);
        let bytes = v.triple(old, block_bytes)?;
        s.blocks.iter_mut().zip(bytes).for_each(|(sizes, bytes)| sizes.set_fixed(bytes));
        Ok(())
    })
    .aka(&["blocksize"]),
    set("bsrange", "", |s, v| {
        let ranges = v.triple([None; 3], |part| part.range(block_bytes).map(Some))?;
        let given = s.blocks.iter_mut().zip(ranges);
        given.for_each(|(sizes, range)| range.into_iter().for_each(|range| sizes.set_range(range)));
        Ok(())
    })
    .aka(&["blocksize_range"]),
    set("bssplit", "", |s, v| {
        s.blocks = v.triple(s.blocks.clone(), BlockSizes::parse_split)?;
        if s.blocks.iter().all(|sizes| sizes.max <= BLOCK_BYTES_MAX) { Ok(()) } else { Err(BLOCK) }
    }),
    flag("bs_unaligned", "", |s, v| v.flag().map(|f| s.unaligned = f))
        .aka(&["blocksize_unaligned"]),
    set("bs_is_seq_rand", "", |s, v| v.flag().map(|f| s.sequential_random_sizes = f)),
    set(
        "ba",
        "of random jobs; other than the smallest block it switches the random map off, as in fio",
        |s, v| {
            s.align = v.triple(s.align, |part| part.some_size().map(Some))?;
            Ok(())
        },
    )
    .aka(&["blockalign"]),
    set("write_hint", "lifetime of what the job writes: see `docs/placement.md`", |s, v| {
        s.lifetime = Lifetime::named(v.text)
            .filter(|lifetime| *lifetime != Lifetime::NotSet)
            .ok_or("none, short, medium, long or extreme")?;
        Ok(())
    }),
    set("rwmixread", "each call is drawn", |s, v| v.percent().map(|p| s.read_percent = p)),
    set("rwmixwrite", "each call is drawn", |s, v| v.percent().map(|p| s.read_percent = 100 - p)),
    set(
        "size",
        "a share (`50%`) is one of the files' size, which an earlier job or `filesize` gives",
        |s, v| {
            s.size = Some(v.extent()?);
            Ok(())
        },
    ),
    set("io_size", "a share is one of the files' size", |s, v| {
        // 0 is fio's default: as much as size
        s.io_size = Some(v.extent()?).filter(|extent| *extent != Extent::Bytes(0));
        Ok(())
    })
    .aka(&["io_limit"]),
    set("filesize", "one size, or a range from which each file's is drawn", |s, v| {
        s.file_sizes = Some(v.range_or_one(Value::some_size)?);
        Ok(())
    }),
    set("nrfiles", "", |s, v| v.count(FILES).map(|n| s.nrfiles = Some(n))).aka(&["nr_files"]),
    set("openfiles", "", |s, v| v.count(FILES).map(|n| s.openfiles = Some(n))),
    set("file_service_type", "`roundrobin`, `random`, `sequential`, and `:N`", |s, v| {
        Service::parse(v).map(|service| s.service = service)
    }),
    set("offset", "", |s, v| v.extent().map(|e| s.offset = e)).aka(&["fileoffset"]),
    set("offset_increment", "", |s, v| v.extent().map(|e| s.offset_increment = e)),
    set("file_append", "", |s, v| v.flag().map(|f| s.file_append = f)),
    set("fallocate", "`posix` is `native`", |s, v| Fallocate::parse(v).map(|f| s.fallocate = f)),
    set("overwrite", "", |s, v| v.flag().map(|f| s.overwrite = f)),
    set("create_fsync", "", |s, v| v.flag().map(|f| s.create_fsync = f)),
    set("create_on_open", "", |s, v| v.flag().map(|f| s.create_on_open = f)),
    set("invalidate", "", |s, v| v.flag().map(|f| s.invalidate = f)),
    set("pre_read", "calls in it are not measured", |s, v| v.flag().map(|f| s.pre_read = f)),
    set("unlink", "the last job that uses a file takes it away", |s, v| {
        v.flag().map(|f| s.unlink = f)
    }),
    set("ioengine", "sync, psync, vsync, pvsync, pvsync2, libaio, io_uring, posixaio", |s, v| {
        s.engine = Engine::parse(v)?;
        Ok(())
    }),
    set("iodepth", "above 1 with libaio, io_uring or posixaio and `direct=1` only", |s, v| {
        v.count(DEPTHS).map(|n| s.iodepth = n)
    }),
    set("iodepth_low", "with `iodepth` above 1", |s, v| {
        v.count(DEPTHS_OR_NONE).map(|n| s.iodepth_low = n)
    }),
    set("iodepth_batch_complete_min", "with `iodepth` above 1; 0 is 1", |s, v| {
        v.count(DEPTHS_OR_NONE).map(|n| s.batch_complete_min = n.max(1))
    })
    .aka(&["iodepth_batch_complete"]),
    set("direct", "block sizes and offsets must be whole blocks of 4 KiB", |s, v| {
        v.flag().map(|f| s.direct = f)
    }),
    set("buffered", "", |s, v| v.flag().map(|f| s.direct = !f)),
    set("fsync", "", |s, v| v.count(NONE_OR_MORE).map(|n| s.fsync = n)),
    set("fdatasync", "", |s, v| v.count(NONE_OR_MORE).map(|n| s.fdatasync = n)),
    set("end_fsync", "", |s, v| v.flag().map(|f| s.end_fsync = f)),
    set("fsync_on_close", "", |s, v| v.flag().map(|f| s.fsync_on_close = f)),
    set("sync", "every write is followed by a sync call", |s, v| {
        SyncWrites::parse(v).map(|w| s.sync = w)
    }),
    set(
        "verify",
        "what was written is read back; contents are checked always, whatever the method",
        |s, v| verify(v).map(|f| s.verify = f),
    ),
    set("do_verify", "", |s, v| v.flag().map(|f| s.do_verify = f)),
    set(
        "random_distribution",
        "`random`, `zipf`, `pareto`, `normal`, `zoned`, `zoned_abs`",
        |s, v| Distribution::parse(v).map(|d| s.distribution = d),
    ),
    set("percentage_random", "", |s, v| {
        v.triple(s.random_percent, Value::percent).map(|p| s.random_percent = p)
    }),
    set(
        "random_generator",
        "`lfsr`: each block once, in the order and from the places of fio, which `randseed` does not change (in fio 3.33 it moves clones of `numjobs`); others are drawn alike",
        |s, v| Generator::parse(v).map(|g| s.generator = g),
    ),
    flag("norandommap", "", |s, v| v.flag().map(|f| s.norandommap = f)),
    set("randseed", "joined with the seed of the experiment", |s, v| {
        s.randseed = Some(v.text.parse().map_err(|_| "a whole number")?);
        Ok(())
    }),
    set("randrepeat", "1: every loop of a job has the same random numbers", |s, v| {
        v.flag().map(|f| s.randrepeat = f)
    }),
    set("allrandrepeat", "as `randrepeat`", |s, v| v.flag().map(|f| s.allrandrepeat = f)),
    set("numjobs", "", |s, v| v.count(THREADS).map(|n| s.numjobs = n)),
    set("loops", "", |s, v| v.count(ONE_OR_MORE).map(|n| s.loops = n)),
    set("number_ios", "without those of `ramp_time`", |s, v| {
        v.count(ONE_OR_MORE).map(|n| s.number_ios = Some(n))
    }),
    set("runtime", "", |s, v| v.time(NS_PER_S).map(|t| s.runtime_ns = t)).aka(&["timeout"]),
    flag("time_based", "", |s, v| v.flag().map(|f| s.time_based = f)),
    set(
        "ramp_time",
        "calls in it are not measured; `fsync` and `rate` begin anew after it",
        |s, v| v.time(NS_PER_S).map(|t| s.ramp_ns = t),
    ),
    set("startdelay", "from the start of the run", |s, v| {
        s.startdelay_ns = v.range_or_one(|v| v.time(NS_PER_S))?;
        Ok(())
    }),
    set("thinktime", "", |s, v| v.time(NS_PER_US).map(|t| s.thinktime_ns = t)),
    set("thinktime_blocks", "", |s, v| v.count(ONE_OR_MORE).map(|n| s.thinktime_blocks = n)),
    set("rate", "", |s, v| v.triple(s.rate, Value::size).map(|r| s.rate = r)),
    set(
        "rate_iops",
        "calls of the smallest block, as in fio: a larger one counts for several",
        |s, v| v.triple(s.rate_iops, Value::size).map(|r| s.rate_iops = r),
    ),
    set("rate_process", "`linear` or `poisson`", |s, v| {
        s.poisson = one_of(v, "linear", "poisson", "linear or poisson")?;
        Ok(())
    }),
    set("wait_for", "", |s, v| {
        s.wait_for = Some(v.text.to_owned());
        Ok(())
    }),
    flag("exitall", "in one job, it holds for all, as in fio", |s, v| {
        v.flag().map(|f| s.exitall = f)
    }),
    set("exit_what", "", |s, v| ExitWhat::parse(v).map(|what| s.exit_what = what)),
    flag("stonewall", "", |s, v| v.flag().map(|f| s.stonewall = f)).aka(&["wait_for_previous"]),
    flag("new_group", "", |s, v| v.flag().map(|f| s.new_group = f)),
    flag("group_reporting", "", |s, v| v.flag().map(|f| s.group_reporting = f)),
    flag(
        "write_bw_log",
        "files as fio's, in KB/s; the stack is part of their names if there are several",
        |s, v| {
            s.logs.bandwidth = Some(log_name(v));
            Ok(())
        },
    ),
    flag("write_lat_log", "", |s, v| {
        s.logs.latency = Some(log_name(v));
        Ok(())
    }),
    flag("write_iops_log", "", |s, v| {
        s.logs.iops = Some(log_name(v));
        Ok(())
    }),
    set("log_avg_msec", "", |s, v| v.count(NONE_OR_MORE).map(|ms| s.logs.window_ms = ms)),
    set("log_max_value", "", |s, v| v.flag().map(|f| s.logs.longest = f)),
    set("log_offset", "", |s, v| v.flag().map(|f| s.logs.offset = f)),
    set(
        "per_job_logs",
        "0: jobs whose logs have one name share the file, one after the other",
        |s, v| v.flag().map(|f| s.logs.shared = !f),
    ),
    set("clat_percentiles", "in fio's JSON", |s, v| v.flag().map(|f| s.percentiles.completion = f)),
    set("lat_percentiles", "in fio's JSON", |s, v| v.flag().map(|f| s.percentiles.total = f)),
    set("slat_percentiles", "in fio's JSON", |s, v| v.flag().map(|f| s.percentiles.submission = f)),
    set("percentile_list", "in fio's JSON", |s, v| {
        s.percentiles.list = Percentiles::parse_list(v)?;
        Ok(())
    }),
    // No effect on which calls are made.
    inert("allow_mounted_write"),
    inert("block_error_percentiles"),
    inert("buffer_compress_chunk"),
    inert("buffer_compress_percentage"),
    inert("buffer_pattern"),
    inert("bwavgtime"),
    inert("cgroup"),
    inert("cgroup_nodelete"),
    inert("cgroup_weight"),
    inert("clocksource"),
    inert("cpumask"),
    inert("cpus_allowed"),
    inert("cpus_allowed_policy"),
    inert("cmdprio"),
    inert("cmdprio_bssplit"),
    inert("cmdprio_class"),
    inert("cmdprio_percentage"),
    inert("create_serialize"),
    inert("dedupe_global"),
    inert("dedupe_mode"),
    inert("dedupe_percentage"),
    inert("dedupe_working_set_percentage"),
    inert("disable_bw_measurement").aka(&["disable_bw"]),
    inert("disable_clat"),
    inert("disable_lat"),
    inert("disable_slat"),
    inert("disk_util"),
    inert("error_dump"),
    inert_flag("exitall_on_error"),
    inert("experimental_verify"),
    inert("fadvise_hint"),
    inert_flag("fixedbufs"),
    inert("force_async"),
    inert("gid"),
    inert("gtod_cpu"),
    inert("gtod_reduce"),
    inert_flag("hipri"),
    inert("hipri_percentage"),
    inert("hugepage-size"),
    inert("iodepth_batch").aka(&["iodepth_batch_submit"]),
    inert("iodepth_batch_complete_max"),
    inert("ioscheduler"),
    inert("iopsavgtime"),
    inert("lockmem"),
    inert("log_alternate_epoch_clock_id"),
    inert("log_compression"),
    inert("log_compression_cpus"),
    inert("log_entries"),
    inert("log_hist_coarseness"),
    inert("log_hist_msec"),
    inert("log_prio"),
    inert("log_store_compressed"),
    inert("mem").aka(&["iomem"]),
    inert("mem_align").aka(&["iomem_align"]),
    inert("nice"),
    inert("nonvectored"),
    inert("numa_cpu_nodes"),
    inert("numa_mem_policy"),
    inert("prio"),
    inert("prioclass"),
    inert("rate_cycle").aka(&["ratecycle"]),
    inert_flag("refill_buffers"),
    inert_flag("registerfiles"),
    inert("scramble_buffers"),
    inert("significant_figures"),
    inert("softrandommap"),
    inert_flag("sqthread_poll"),
    inert("sqthread_poll_cpu"),
    inert("stats"),
    inert_flag("thread"),
    inert("uid"),
    inert("unique_filename"),
    inert("unit_base"),
    inert_flag("userspace_reap"),
    inert("verify_async"),
    inert("verify_async_cpus"),
    inert("verify_dump"),
    inert("verify_fatal"),
    inert("verify_interval"),
    inert("verify_offset"),
    inert("verify_pattern"),
    inert("verify_state_save"),
    inert_flag("zero_buffers"),
    // They would change the I/O, or ask for output that is not made.
    refused("allow_file_create", &["1"]),
    refused("atomic", &["0"]),
    refused("continue_on_error", &["none", "0"]),
    refused("create_only", &["0"]),
    refused("exec_postrun", &[]),
    refused("exec_prerun", &[]),
    refused("fill_device", &["0"])
        .aka(&["fill_fs"])
        .instead("give --fill to fill the volume first"),
    refused("flow", &["0"]),
    refused("flow_id", &["0"]),
    refused("flow_sleep", &["0"]),
    refused("ignore_error", &[]),
    refused("ignore_zone_limits", &["0"])
        .instead("F2FS writes zones by itself; see `dovetail help zoned-drives`"),
    refused("io_submit_mode", &["inline"]),
    refused("job_max_open_zones", &["0"])
        .instead("F2FS writes zones by itself; see `dovetail help zoned-drives`"),
    refused("latency_percentile", &[]).instead("run several depths, with -D and iodepth=${DEPTH}"),
    refused("latency_run", &["0"]).instead("run several depths, with -D and iodepth=${DEPTH}"),
    refused("latency_target", &["0"]).instead("run several depths, with -D and iodepth=${DEPTH}"),
    refused("latency_window", &["0"]).instead("run several depths, with -D and iodepth=${DEPTH}"),
    refused("lockfile", &["none"]),
    refused("log_alternate_epoch", &["0"]).instead("times are virtual and begin at 0"),
    refused("log_unix_epoch", &["0"]).instead("times are virtual and begin at 0"),
    refused("max_latency", &["0"]),
    refused("max_open_zones", &["0"])
        .instead("F2FS writes zones by itself; see `dovetail help zoned-drives`"),
    refused("merge_blktrace_file", &[]).instead("play the trace with `dovetail replay`"),
    refused("merge_blktrace_iters", &[]).instead("play the trace with `dovetail replay`"),
    refused("merge_blktrace_scalars", &[]).instead("play the trace with `dovetail replay`"),
    refused("nowait", &["0"]),
    refused("offset_align", &["0"]),
    refused("opendir", &[]),
    refused("profile", &[]),
    refused("rate_ignore_thinktime", &["0"]),
    refused("rate_iops_min", &["0"]),
    refused("rate_min", &["0"]).aka(&["ratemin"]),
    refused("read_beyond_wp", &["0"])
        .instead("F2FS writes zones by itself; see `dovetail help zoned-drives`"),
    refused("read_iolog", &[]).instead("play the trace with `dovetail replay`"),
    refused("read_iolog_chunked", &["0"]).instead("play the trace with `dovetail replay`"),
    refused("replay_align", &["0"]).instead("play the trace with `dovetail replay`"),
    refused("replay_no_stall", &["0"]).instead("play the trace with `dovetail replay`"),
    refused("replay_redirect", &[]).instead("play the trace with `dovetail replay`"),
    refused("replay_scale", &["0", "1"]).instead("play the trace with `dovetail replay`"),
    refused("replay_skip", &[]).instead("play the trace with `dovetail replay`"),
    refused("replay_time_scale", &["100"]).instead("play the trace with `dovetail replay`"),
    refused("serialize_overlap", &["0"]),
    refused("steadystate", &[])
        .aka(&["ss"])
        .instead("give --precondition, or ramp_time to leave the start out"),
    refused("steadystate_duration", &["0"])
        .aka(&["ss_dur"])
        .instead("give --precondition, or ramp_time to leave the start out"),
    refused("steadystate_ramp_time", &["0"])
        .aka(&["ss_ramp"])
        .instead("give --precondition, or ramp_time to leave the start out"),
    refused("sync_file_range", &[]),
    refused("thinktime_blocks_type", &["complete"]),
    refused("thinktime_iotime", &["0"]),
    refused("thinktime_spin", &["0"]).instead("give thinktime, which waits without a CPU"),
    refused("trim_backlog", &["0"]).instead("write rw=randtrim or rw=trimwrite"),
    refused("trim_backlog_batch", &["0"]).instead("write rw=randtrim or rw=trimwrite"),
    refused("trim_percentage", &["0"]).instead("write rw=randtrim or rw=trimwrite"),
    refused("trim_verify_zero", &["0"]).instead("write rw=randtrim or rw=trimwrite"),
    refused("uncached", &["0"]).instead("give direct=1"),
    refused("unified_rw_reporting", &["0", "none"]).instead("results are by direction"),
    refused("unlink_each_loop", &["0"]),
    refused("verify_backlog", &["0"]),
    refused("verify_backlog_batch", &["0"]),
    refused("verify_only", &["0"]),
    refused("verify_state_load", &["0"]),
    refused("write_barrier", &["0"]),
    refused("write_hist_log", &[]).instead("ask for write_lat_log"),
    refused("write_iolog", &[])
        .instead("a recording is made with blktrace; see `dovetail help traces`"),
    refused("zone_reset_frequency", &["0"])
        .instead("F2FS writes zones by itself; see `dovetail help zoned-drives`"),
    refused("zone_reset_threshold", &["0"])
        .instead("F2FS writes zones by itself; see `dovetail help zoned-drives`"),
    refused("zonecapacity", &["0"])
        .instead("F2FS writes zones by itself; see `dovetail help zoned-drives`"),
    refused("zonemode", &["none"])
        .instead("F2FS writes zones by itself; see `dovetail help zoned-drives`"),
    refused_flag("fdp", &["0"]).instead("give write_hint; see `dovetail help placement`"),
    refused("dataplacement", &["0"]).instead("give write_hint; see `dovetail help placement`"),
    refused("fdp_pli", &["0"]).instead("give write_hint; see `dovetail help placement`"),
    refused("plids", &["0"]).instead("give write_hint; see `dovetail help placement`"),
    refused("fdp_pli_select", &["0"]).instead("give write_hint; see `dovetail help placement`"),
    refused("plid_select", &["0"]).instead("give write_hint; see `dovetail help placement`"),
    refused("dp_scheme", &["0"]).instead("give write_hint; see `dovetail help placement`"),
    refused("zonerange", &["0"])
        .instead("F2FS writes zones by itself; see `dovetail help zoned-drives`"),
    refused("zonesize", &["0"])
        .instead("F2FS writes zones by itself; see `dovetail help zoned-drives`"),
    refused("zoneskip", &["0"])
        .instead("F2FS writes zones by itself; see `dovetail help zoned-drives`"),
];

/// Begin of the logs' names; empty for the job's own, if nothing was given.
fn log_name(value: Value<'_>) -> String {
    if value.text == "1" { String::new() } else { value.text.to_owned() }
}

/// Files of one job at most, so that a slip of the pen does not fill the memory (assumed).
const FILES_MAX: u64 = 1 << 20;

/// fio's own limit of jobs (`--max-jobs`, default 4096).
pub(super) const THREADS_MAX: u64 = 4096;

const BLOCK: Expected = "a block size from 1 byte to 1 GiB, such as 4k";

fn block_bytes(value: Value<'_>) -> Result<u64, Expected> {
    value.size().ok().filter(|bytes| (1..=BLOCK_BYTES_MAX).contains(bytes)).ok_or(BLOCK)
}

/// Returns whether the value is `yes`; it must be `no` otherwise.
fn one_of(value: Value<'_>, no: &str, yes: &str, expected: Expected) -> Result<bool, Expected> {
    if value.text == yes {
        Ok(true)
    } else if value.text == no {
        Ok(false)
    } else {
        Err(expected)
    }
}

/// Names separated by `:`; `\:` is a colon of the name.
fn names(value: Value<'_>) -> Result<Vec<String>, Expected> {
    let mut names = vec![String::new()];
    let mut characters = value.text.chars().peekable();
    while let Some(c) = characters.next() {
        match (c, names.last_mut()) {
            (':', _) => names.push(String::new()),
            ('\\', Some(name)) if characters.peek() == Some(&':') => name.extend(characters.next()),
            (_, Some(name)) => name.push(c),
            (_, None) => {}
        }
    }
    if names.iter().any(String::is_empty) {
        Err("a name, or several separated by \":\"")
    } else {
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn counts_are_told_as_they_are_bounded() {
        for counts in [NONE_OR_MORE, ONE_OR_MORE, FILES, DEPTHS, DEPTHS_OR_NONE, THREADS] {
            let (from, to) = (counts.range.start(), counts.range.end());
            assert_eq!(counts.expected, format!("a number from {from} to {to}"));
        }
    }

    #[test]
    fn every_name_stands_once() {
        let mut seen = HashSet::new();
        for option in OPTIONS {
            for name in option.aliases.iter().chain([&option.name]) {
                assert!(seen.insert(*name), "{name}");
            }
        }
    }

    #[test]
    fn an_escaped_colon_is_part_of_the_name() {
        let read = |text| names(Value { text, kilo: 1024 });
        assert_eq!(read("a:b"), Ok(vec!["a".into(), "b".into()]));
        assert_eq!(read("a\\:b"), Ok(vec!["a:b".into()]));
        assert!(read("").is_err() && read("a:").is_err());
    }
}
