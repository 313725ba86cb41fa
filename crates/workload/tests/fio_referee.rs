//! fio itself as referee: it runs a job, writes its I/O log and counts its requests; our reader
//! must count the same.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::path::Path;
use std::process::Command;

use dovetail_workload::Op;
use dovetail_workload::trace::{Format, TraceOptions, TraceReader};

/// Runs fio in `folder`; returns its JSON.
fn fio(folder: &Path, rw: &str) -> String {
    let output = Command::new("fio")
        .args([
            "--name=referee",
            "--size=4m",
            "--bssplit=512/20:4k/50:12k/30",
            "--fsync=10",
            "--thinktime=50us",
        ])
        .args(["--output-format=json", "--randseed=7"])
        .arg(format!("--rw={rw}"))
        .arg(format!("--filename={}", folder.join("data").display()))
        .arg(format!("--write_iolog={}", folder.join("log").display()))
        .output()
        .expect("the tests need fio: cargo xtask test installs it, or apt-get install fio");
    assert!(output.status.success(), "fio failed: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The first `"key" : number` after `"section" : {`.
fn figure(json: &str, section: &str, key: &str) -> u64 {
    let after = json
        .split(&format!("\"{section}\" : {{"))
        .nth(1)
        .unwrap_or_else(|| panic!("no {section} in {json}"));
    let value = after
        .split(&format!("\"{key}\" : "))
        .nth(1)
        .unwrap_or_else(|| panic!("no {key} in {section}"));
    let digits: String = value.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap()
}

#[test]
fn our_counts_are_those_of_fio() {
    for rw in ["randrw", "write", "randread"] {
        let folder = tempfile::tempdir().unwrap();
        let json = fio(folder.path(), rw);
        let reader =
            TraceReader::open(folder.path().join("log"), &TraceOptions::default()).unwrap();
        assert_eq!(reader.format(), Format::FioV3);
        let requests: Vec<_> = reader.map(Result::unwrap).collect();
        let count = |op: Op| requests.iter().filter(|r| r.op == op).count() as u64;
        let bytes =
            |op: Op| requests.iter().filter(|r| r.op == op).map(|r| r.range.len).sum::<u64>();
        assert_eq!(count(Op::Read), figure(&json, "read", "total_ios"), "{rw}");
        assert_eq!(count(Op::Write), figure(&json, "write", "total_ios"), "{rw}");
        assert_eq!(count(Op::Flush), figure(&json, "sync", "total_ios"), "{rw}");
        assert_eq!(bytes(Op::Read), figure(&json, "read", "io_bytes"), "{rw}");
        assert_eq!(bytes(Op::Write), figure(&json, "write", "io_bytes"), "{rw}");
    }
}
