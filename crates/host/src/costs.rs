//! Costs of the host's own work.

use dovetail_time::{Rng, SimSpan};
use serde::{Deserialize, Serialize};

use crate::placement::Placement;
use crate::read_ahead::ReadAheadLimits;

/// Costs and limits of the host. `bench --sensitivity` halves and doubles each that is assumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostCosts {
    /// Nanoseconds of CPU for a system call, whatever it does. Assumed.
    pub syscall_ns: u64,
    /// Nanoseconds of CPU for each block of 4 KiB that a call reads or writes: copying, page cache,
    /// pointers. Assumed.
    pub block_ns: u64,
    /// The CPU time of a call is longer or shorter by up to so many percent, at random: interrupts,
    /// caches, clocks. With 0, threads that do the same stay exactly as far apart as they began.
    /// Assumed.
    #[serde(skip_serializing_if = "is_zero")]
    pub jitter_percent: u32,
    /// Nanoseconds of CPU to build and submit a request. Assumed.
    pub request_ns: u64,
    /// CPUs on which the work of calls and requests takes its turn, and a request reaches the drive
    /// when it has been handed over; 0 for as many as there is work, of which no request waits for
    /// any. Assumed.
    pub cpus: u32,
    /// Nanoseconds from the end of a request to the thread that waits for it. Assumed.
    pub wake_ns: u64,
    /// Requests that the drive takes at a time; more wait. Assumed.
    pub queue_depth: u32,
    /// The largest request in KiB (Linux: `max_sectors_kb`, 1280 by default).
    pub max_request_kib: u32,
    /// Flushes that come while one is under way share the next one (Linux does so).
    pub merge_flushes: bool,
    /// The drive takes writes that are durable when they complete (force unit access); without, a
    /// flush follows each.
    pub fua: bool,
    /// Window of read-ahead of buffered reads through a file system in KiB, 0 for none (Linux:
    /// `read_ahead_kb`, 128 by default).
    pub read_ahead_kib: u32,
    /// The rule by which a write gets its stream, or its handle of a drive with FDP.
    #[serde(skip_serializing_if = "Placement::is_default")]
    pub placement: Placement,
}

impl Default for HostCosts {
    fn default() -> Self {
        Self {
            syscall_ns: 1_000,
            block_ns: 500,
            jitter_percent: 0,
            request_ns: 2_000,
            cpus: 0,
            wake_ns: 3_000,
            queue_depth: 256,
            max_request_kib: 1280,
            merge_flushes: true,
            fua: true,
            read_ahead_kib: 0,
            placement: Placement::Writer,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's interface")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Costs of which one is another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostVariant {
    /// The field.
    pub key: &'static str,
    /// Its value.
    pub from: u64,
    /// The other value.
    pub to: u64,
    /// All fields, with the other value.
    pub costs: HostCosts,
}

/// The largest cost: a second.
const MAX_NS: u64 = 1_000_000_000;
/// The most CPUs.
const MAX_CPUS: u32 = 4096;
/// The most jitter: `--sensitivity` doubles it, and at 100 % a call may take no time.
const MAX_JITTER_PERCENT: u32 = 50;
/// The largest window of read-ahead: 1 GiB.
const MAX_READ_AHEAD_KIB: u32 = 1 << 20;

impl HostCosts {
    /// No host at all: commands reach the drive as they are, when they are issued.
    pub const NONE: Self = Self {
        syscall_ns: 0,
        block_ns: 0,
        jitter_percent: 0,
        request_ns: 0,
        cpus: 0,
        wake_ns: 0,
        queue_depth: u32::MAX,
        max_request_kib: u32::MAX,
        merge_flushes: false,
        fua: true,
        read_ahead_kib: 0,
        placement: Placement::Writer,
    };

    /// The default costs with some others, as `queue_depth=32,request_ns=1000`.
    ///
    /// # Errors
    /// A sentence on what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut costs = Self::default();
        for part in text.split(',').filter(|part| !part.trim().is_empty()) {
            let (name, value) =
                part.split_once('=').ok_or("give NAME=VALUE, separated by commas")?;
            costs.set(name.trim(), value.trim())?;
        }
        costs.check().map(|()| costs)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let number =
            || value.parse::<u64>().map_err(|_| format!("{name}: '{value}' is not a whole number"));
        let small =
            || u32::try_from(number()?).map_err(|_| format!("{name}: {value} is too large"));
        match name {
            "syscall_ns" => self.syscall_ns = number()?,
            "block_ns" => self.block_ns = number()?,
            "jitter_percent" => self.jitter_percent = small()?,
            "request_ns" => self.request_ns = number()?,
            "wake_ns" => self.wake_ns = number()?,
            "cpus" => self.cpus = small()?,
            "queue_depth" => self.queue_depth = small()?,
            "max_request_kib" => self.max_request_kib = small()?,
            "read_ahead_kib" => self.read_ahead_kib = small()?,
            "placement" => {
                self.placement = Placement::named(value)
                    .ok_or_else(|| format!("{name}: give writer, lifetime or none"))?;
            }
            "merge_flushes" => {
                self.merge_flushes =
                    value.parse().map_err(|_| format!("{name}: give true or false"))?;
            }
            "fua" => {
                self.fua = value.parse().map_err(|_| format!("{name}: give true or false"))?;
            }
            _ => return Err(format!("'{name}' is no cost of the host")),
        }
        Ok(())
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// A sentence on the figure that is out of its range.
    pub fn check(&self) -> Result<(), String> {
        let costs = [
            ("syscall_ns", self.syscall_ns),
            ("block_ns", self.block_ns),
            ("request_ns", self.request_ns),
            ("wake_ns", self.wake_ns),
        ];
        if let Some((name, value)) = costs.into_iter().find(|(_, value)| *value > MAX_NS) {
            return Err(format!("{name} is {value}: give 0 to {MAX_NS}"));
        }
        if self.jitter_percent > MAX_JITTER_PERCENT {
            return Err(format!(
                "jitter_percent is {}: give 0 to {MAX_JITTER_PERCENT}",
                self.jitter_percent
            ));
        }
        if self.cpus > MAX_CPUS {
            return Err(format!("cpus is {}: give 0 to {MAX_CPUS}", self.cpus));
        }
        if self.queue_depth == 0 {
            return Err("queue_depth is 0: a drive that takes no request does nothing; give at \
                        least 1"
                .into());
        }
        if self.max_request_kib < 4 {
            return Err(format!("max_request_kib is {}: give at least 4", self.max_request_kib));
        }
        if !self.read_ahead_kib.is_multiple_of(4) || self.read_ahead_kib > MAX_READ_AHEAD_KIB {
            return Err(format!(
                "read_ahead_kib is {}: give 0 to {MAX_READ_AHEAD_KIB} in steps of 4",
                self.read_ahead_kib
            ));
        }
        Ok(())
    }

    /// Limits of read-ahead; `None` without it.
    pub fn read_ahead_limits(&self) -> Option<ReadAheadLimits> {
        (self.read_ahead_kib > 0).then(|| ReadAheadLimits {
            pages: u64::from(self.read_ahead_kib / 4),
            call_pages: self.max_request_blocks(),
        })
    }

    /// Each assumed figure halved, and doubled; those that this does not change are left out.
    pub fn variants_of_assumed(&self) -> Vec<CostVariant> {
        let Self { syscall_ns, block_ns, request_ns, wake_ns, cpus, queue_depth, .. } = *self;
        // 0 means as many as there is work: half of one CPU is one, not that
        let cpus_of =
            |to: u64| if cpus == 0 { 0 } else { u32::try_from(to).unwrap_or(u32::MAX).max(1) };
        let depth = |depth: u64| u32::try_from(depth).unwrap_or(u32::MAX).max(1);
        let all = |key: &'static str, from: u64, with: &dyn Fn(u64) -> Self| {
            [from / 2, from.saturating_mul(2)].map(|to| CostVariant {
                key,
                from,
                to,
                costs: with(to),
            })
        };
        let variants = [
            all("syscall_ns", syscall_ns, &|syscall_ns| Self { syscall_ns, ..*self }),
            all("block_ns", block_ns, &|block_ns| Self { block_ns, ..*self }),
            all("jitter_percent", self.jitter_percent.into(), &|to| Self {
                jitter_percent: to as u32, // at most twice MAX_JITTER_PERCENT
                ..*self
            }),
            all("request_ns", request_ns, &|request_ns| Self { request_ns, ..*self }),
            all("wake_ns", wake_ns, &|wake_ns| Self { wake_ns, ..*self }),
            all("cpus", cpus.into(), &|to| Self { cpus: cpus_of(to), ..*self }),
            all("queue_depth", queue_depth.into(), &|to| Self { queue_depth: depth(to), ..*self }),
        ];
        variants.into_iter().flatten().filter(|variant| variant.costs != *self).collect()
    }

    /// CPU time of a call that takes so many system calls and moves so many blocks.
    pub const fn call(&self, system_calls: u32, blocks: u64) -> SimSpan {
        SimSpan::from_ns(self.syscall_ns * system_calls as u64 + self.block_ns * blocks)
    }

    /// The CPU time of a call, longer or shorter by chance.
    pub fn call_by_chance(&self, system_calls: u32, blocks: u64, rng: &mut Rng) -> SimSpan {
        let mean = self.call(system_calls, blocks);
        let most = mean.as_ns() * u64::from(self.jitter_percent) / 100;
        if most == 0 {
            return mean;
        }
        SimSpan::from_ns(mean.as_ns() - most + rng.below(2 * most + 1))
    }

    /// The largest request in blocks.
    pub const fn max_request_blocks(&self) -> u64 {
        self.max_request_kib as u64 / 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_read_or_refused_in_a_sentence() {
        let costs = HostCosts::parse("queue_depth=32, merge_flushes=false").unwrap();
        assert_eq!(
            costs,
            HostCosts { queue_depth: 32, merge_flushes: false, ..HostCosts::default() }
        );
        assert_eq!(HostCosts::parse(""), Ok(HostCosts::default()));
        for (text, says) in [
            ("depth=1", "is no cost"),
            ("queue_depth", "NAME=VALUE"),
            ("queue_depth=0", "at least 1"),
            ("wake_ns=much", "not a whole number"),
            ("read_ahead_kib=130", "steps of 4"),
            ("merge_flushes=maybe", "true or false"),
            ("jitter_percent=51", "0 to 50"),
        ] {
            let error = HostCosts::parse(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn calls_take_their_cpu_time_on_average_and_no_longer_than_the_jitter_makes_them() {
        let (mut rng, exact) = (Rng::new(3), HostCosts::default());
        assert_eq!(exact.call_by_chance(1, 1, &mut rng), exact.call(1, 1));
        let costs = HostCosts { jitter_percent: 20, ..exact };
        let times: Vec<u64> =
            (0..10_000).map(|_| costs.call_by_chance(1, 1, &mut rng).as_ns()).collect();
        let (least, most) = (times.iter().min().copied(), times.iter().max().copied());
        assert_eq!((least, most), (Some(1200), Some(1800)));
        let mean = times.iter().sum::<u64>() / 10_000;
        assert!((1495..1505).contains(&mean), "{mean}");
    }

    #[test]
    fn each_assumed_figure_is_halved_and_doubled_alone() {
        let costs = HostCosts {
            wake_ns: 0,
            cpus: 1,
            queue_depth: 1,
            jitter_percent: 10,
            ..HostCosts::default()
        };
        let variants = costs.variants_of_assumed();
        let shown: Vec<_> = variants.iter().map(|v| (v.key, v.from, v.to)).collect();
        let expected = [
            ("syscall_ns", 1_000, 500),
            ("syscall_ns", 1_000, 2_000),
            ("block_ns", 500, 250),
            ("block_ns", 500, 1_000),
            ("jitter_percent", 10, 5),
            ("jitter_percent", 10, 20),
            ("request_ns", 2_000, 1_000),
            ("request_ns", 2_000, 4_000),
            ("cpus", 1, 2),
            ("queue_depth", 1, 2),
        ];
        assert_eq!(shown, expected);
        assert_eq!(variants[9].costs, HostCosts { queue_depth: 2, ..costs });
    }
}
