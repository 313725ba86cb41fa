//! A sweep that is ended anywhere goes on where it was, and its table is the same.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use dovetail_sweep::{
    Folder, Outcome, Performed, Point, Record, Shard, Sweep, SweepError, merge, run, table,
};
use serde_json::{Map, Value, json};
use tempfile::tempdir;

const TEXT: &str =
    "command = 'replay'\ninputs = ['t']\n[axes]\nop = { from = 1, to = 10 }\ngc = ['a', 'b']\n";
const PROGRAM: &str = "dovetail 1";

fn sweep() -> Sweep {
    Sweep::parse(TEXT, "s.toml").unwrap()
}

fn figures(point: &Point) -> Map<String, Value> {
    let op: f64 = point.values[0].1.parse().unwrap();
    json!({ "waf": 1.0 + 1.0 / op, "label": point.name() }).as_object().unwrap().clone()
}

fn work(point: &Point) -> Outcome {
    match point.number {
        7 => Outcome::Failed("no room, says \"it\"".into()),
        _ => Outcome::Done(vec![figures(point)], None),
    }
}

fn in_order(points: &[&Point]) -> Vec<usize> {
    (0..points.len()).collect()
}

fn go_on(folder: &Path, shard: Shard, work: impl Fn(&Point) -> Outcome + Sync) -> Performed {
    let sweep = sweep();
    let folder = Folder::open(folder, &sweep, PROGRAM, shard).unwrap();
    run((&sweep, shard), &folder, (3, false), in_order, |_| (), work, |_, _| {}).unwrap()
}

fn table_of(folder: &Path) -> String {
    let folder = Folder::open(folder, &sweep(), PROGRAM, Shard::WHOLE).unwrap();
    table(&sweep(), &folder.records().unwrap()).unwrap()
}

fn undisturbed() -> String {
    let folder = tempdir().unwrap();
    let done = go_on(folder.path(), Shard::WHOLE, work);
    assert_eq!(done, Performed { before: 0, now: 20, failed: 1, of: 20 });
    table_of(folder.path())
}

#[test]
fn a_failed_point_is_a_row() {
    let table = undisturbed();
    assert_eq!(table.lines().count(), 21);
    assert_eq!(table.lines().next(), Some("point,op,gc,waf,label,error"));
    assert_eq!(table.lines().nth(3), Some("2,2,a,1.5,op=2 gc=a,"));
    assert_eq!(table.lines().nth(8), Some("7,4,b,,,\"no room, says \"\"it\"\"\""));
}

/// Ends the sweep after each number of points, at each byte of a line, and goes on.
#[test]
fn an_ended_sweep_goes_on_where_it_was() {
    let expected = undisturbed();
    for after in 0..20 {
        let folder = tempdir().unwrap();
        let done = AtomicUsize::new(0);
        let stops = |point: &Point| {
            if done.fetch_add(1, Ordering::SeqCst) >= after {
                Outcome::Stopped
            } else {
                work(point)
            }
        };
        let first = go_on(folder.path(), Shard::WHOLE, stops);
        let lines = folder.path().join("points-1-of-1.jsonl");
        let half = serde_json::to_string(&Record { point: 19, runs: vec![], error: None }).unwrap();
        let cut = after % half.len();
        OpenOptions::new()
            .append(true)
            .open(lines)
            .unwrap()
            .write_all(&half.as_bytes()[..cut])
            .unwrap();
        let again = Mutex::new(BTreeMap::<u32, u32>::new());
        let counted = |point: &Point| {
            *again.lock().unwrap().entry(point.number).or_default() += 1;
            work(point)
        };
        let second = go_on(folder.path(), Shard::WHOLE, counted);
        assert_eq!((second.before, second.before + second.now), (first.now, 20), "{after}");
        assert!(again.lock().unwrap().values().all(|times| *times == 1));
        assert_eq!(table_of(folder.path()), expected, "{after}");
    }
}

/// The line that another process is writing may end amid a letter.
#[test]
fn a_line_that_is_being_written_is_not_read() {
    let folder = tempdir().unwrap();
    go_on(folder.path(), Shard::WHOLE, work);
    let open = Folder::open(folder.path(), &sweep(), PROGRAM, Shard::WHOLE).unwrap();
    let lines = folder.path().join("points-1-of-1.jsonl");
    let mut lines = OpenOptions::new().append(true).open(lines).unwrap();
    lines.write_all(&"{\"point\":3,\"error\":\"é".as_bytes()[..21]).unwrap();
    assert_eq!(open.records().unwrap().len(), 20);
    lines.write_all(b"\n").unwrap();
    let damage = open.records().unwrap_err().to_string();
    assert!(damage.contains("points-1-of-1.jsonl:21: this is no result of a sweep"), "{damage}");
}

#[test]
fn shards_are_merged_to_the_same_table() {
    let (one, two, into) = (tempdir().unwrap(), tempdir().unwrap(), tempdir().unwrap());
    go_on(one.path(), "1/2".parse().unwrap(), work);
    go_on(two.path(), "2/2".parse().unwrap(), work);
    let into = into.path().join("all");
    let (sweep, records) = merge(&into, &[one.path().into(), two.path().into()]).unwrap();
    assert_eq!(table(&sweep, &records).unwrap(), undisturbed());
    assert_eq!(table_of(&into), undisturbed());
    // one folder may serve all shards
    let shared = tempdir().unwrap();
    go_on(shared.path(), "1/2".parse().unwrap(), work);
    let rest = go_on(shared.path(), Shard::WHOLE, work);
    assert_eq!((rest.before, rest.now), (10, 10));
    assert_eq!(table_of(shared.path()), undisturbed());
}

fn message(folder: &Path, text: &str, program: &str) -> String {
    let sweep = Sweep::parse(text, "s.toml").unwrap();
    Folder::open(folder, &sweep, program, Shard::WHOLE).unwrap_err().to_string()
}

#[test]
fn a_folder_of_another_sweep_is_left_alone() {
    let folder = tempdir().unwrap();
    go_on(folder.path(), Shard::WHOLE, work);
    let says = |text: &str, program: &str| message(folder.path(), text, program);
    assert!(says(&TEXT.replace("to = 10", "to = 9"), PROGRAM).contains("it has 20 points, not 18"));
    assert!(
        says(&TEXT.replace("'b'", "'c'"), PROGRAM)
            .contains("its point 1 is op=1 gc=b, not op=1 gc=c")
    );
    assert!(
        says(&TEXT.replace("'t'", "'u'"), PROGRAM).contains("its options or inputs are others")
    );
    assert!(says(TEXT, "dovetail 2").contains("dovetail 1 made them, and this is dovetail 2"));
    let head = folder.path().join("sweep.json");
    let newer = fs::read_to_string(&head).unwrap().replace("\"version\": 1", "\"version\": 2");
    fs::write(&head, newer).unwrap();
    assert!(says(TEXT, PROGRAM).contains("a later version of dovetail"));
    fs::write(&head, "{}").unwrap();
    assert!(says(TEXT, PROGRAM).contains("its schema is not"));
    fs::write(folder.path().join("sweep.json"), "no JSON").unwrap();
    assert!(matches!(
        Folder::open(folder.path(), &sweep(), PROGRAM, Shard::WHOLE),
        Err(SweepError::Damaged { .. })
    ));
}

/// A job that is changed half way would mix two workloads in one table.
#[test]
fn a_file_that_has_changed_is_told() {
    let folder = tempdir().unwrap();
    let job = folder.path().join("j.fio");
    fs::write(&job, "[a]").unwrap();
    let text = TEXT.replace("'t'", &format!("{:?}", job.display().to_string()));
    let results = folder.path().join("r");
    let open = || {
        let sweep = Sweep::parse(&text, "s.toml").unwrap();
        Folder::open(&results, &sweep, PROGRAM, Shard::WHOLE).map(drop).map_err(|e| e.to_string())
    };
    assert_eq!(open(), Ok(()));
    assert_eq!(open(), Ok(()));
    fs::write(&job, "[b]").unwrap();
    let message = open().unwrap_err();
    assert!(message.contains("j.fio has changed since they were begun"), "{message}");
}

/// A point that one machine had no room for, and another had.
#[test]
fn figures_win_over_a_failure_in_a_merge() {
    let (one, two) = (tempdir().unwrap(), tempdir().unwrap());
    let good = |point: &Point| Outcome::Done(vec![figures(point)], None);
    go_on(one.path(), Shard::WHOLE, work);
    go_on(two.path(), Shard::WHOLE, good);
    for order in [[one.path(), two.path()], [two.path(), one.path()]] {
        let into = tempdir().unwrap();
        let (_, records) = merge(into.path(), &order.map(Path::to_path_buf)).unwrap();
        assert!(records.values().all(|record| record.error.is_none()), "{order:?}");
        assert_eq!(table_of(into.path()), table_of(two.path()));
    }
    // the folder with the failure itself takes in the figures of the other
    merge(one.path(), &[two.path().into()]).unwrap();
    assert_eq!(table_of(one.path()), table_of(two.path()));
}

/// The job was edited between the shards.
#[test]
fn results_of_other_files_are_not_merged() {
    let folder = tempdir().unwrap();
    let job = folder.path().join("j.fio");
    let text = TEXT.replace("'t'", &format!("{:?}", job.display().to_string()));
    let sweep = Sweep::parse(&text, "s.toml").unwrap();
    let parts = [folder.path().join("one"), folder.path().join("two")];
    for (part, shard) in parts.iter().zip(["1/2", "2/2"]) {
        fs::write(&job, shard).unwrap();
        Folder::open(part, &sweep, PROGRAM, shard.parse().unwrap()).unwrap();
    }
    let into = folder.path().join("all");
    let message = merge(&into, &parts).unwrap_err().to_string();
    assert!(message.contains("j.fio was another file when they were begun"), "{message}");
    assert!(!into.exists());
    // nor are the files of the day on which they are joined what they were made from
    fs::write(&job, "3").unwrap();
    merge(&into, &parts[..1]).unwrap();
    let made = fs::read_to_string(parts[0].join("sweep.json")).unwrap();
    assert_eq!(fs::read_to_string(into.join("sweep.json")).unwrap(), made);
}

#[test]
fn whole_results_are_merged_too() {
    let (one, two, into) = (tempdir().unwrap(), tempdir().unwrap(), tempdir().unwrap());
    let whole = |point: &Point| Outcome::Done(vec![figures(point)], Some(point.name()));
    go_on(one.path(), "1/2".parse().unwrap(), whole);
    go_on(two.path(), "2/2".parse().unwrap(), whole);
    merge(into.path(), &[one.path().into(), two.path().into()]).unwrap();
    assert_eq!(fs::read_to_string(into.path().join("series/000003.json")).unwrap(), "op=2 gc=b");
    assert_eq!(fs::read_dir(into.path().join("series")).unwrap().count(), 20);
}

/// A failed point stays failed until it is asked for again; then its new result holds.
#[test]
fn a_failed_point_is_performed_again_if_asked() {
    let folder = tempdir().unwrap();
    go_on(folder.path(), Shard::WHOLE, work);
    assert_eq!(
        go_on(folder.path(), Shard::WHOLE, work),
        Performed { before: 20, now: 0, failed: 1, of: 20 }
    );
    let (sweep, shard) = (sweep(), Shard::WHOLE);
    let opened = Folder::open(folder.path(), &sweep, PROGRAM, shard).unwrap();
    let good = |point: &Point| Outcome::Done(vec![figures(point)], None);
    let done = run((&sweep, shard), &opened, (1, true), in_order, |_| (), good, |_, _| {}).unwrap();
    assert_eq!(done, Performed { before: 19, now: 1, failed: 0, of: 20 });
    assert!(opened.records().unwrap().values().all(|record| record.error.is_none()));
}

#[test]
fn damage_and_a_second_process_are_told() {
    let folder = tempdir().unwrap();
    go_on(folder.path(), Shard::WHOLE, work);
    let open = Folder::open(folder.path(), &sweep(), PROGRAM, Shard::WHOLE).unwrap();
    assert!(message(folder.path(), TEXT, PROGRAM).contains("another process runs this part"));
    let lines = folder.path().join("points-1-of-1.jsonl");
    let text = fs::read_to_string(&lines).unwrap();
    fs::write(&lines, text.replacen("{\"point\"", "{\"pint\"", 1)).unwrap();
    let damage = open.records().unwrap_err().to_string();
    assert!(damage.contains("points-1-of-1.jsonl:1: this is no result of a sweep"), "{damage}");
}

/// A file stands where the folder of whole results should be.
#[test]
fn a_result_that_cannot_be_kept_ends_the_sweep() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("series"), "").unwrap();
    let (sweep, shard) = (sweep(), Shard::WHOLE);
    let opened = Folder::open(folder.path(), &sweep, PROGRAM, shard).unwrap();
    let begun = AtomicUsize::new(0);
    let whole = |point: &Point| {
        let keeps = begun.fetch_add(1, Ordering::SeqCst) == 2;
        Outcome::Done(vec![figures(point)], keeps.then(|| "{}".into()))
    };
    let ended = run((&sweep, shard), &opened, (1, false), in_order, |_| (), whole, |_, _| {});
    let message = ended.unwrap_err().to_string();
    assert!(message.contains("what is finished stays"), "{message}");
    assert_eq!(begun.into_inner(), 3, "no point begins after it");
    assert_eq!(opened.records().unwrap().len(), 2);
}
