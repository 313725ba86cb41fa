use clap::FromArgMatches;

use super::*;

#[test]
fn runs_that_share_drives_have_the_results_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let traces = [("a", 1), ("b", 7), ("c", 313)].map(|(name, step): (_, u64)| {
        let path = folder.path().join(name);
        let line = |n: u64| format!("/f write {} 4096\n", n * step % 999 * 8192);
        let lines: String = (0..1000).map(line).collect();
        std::fs::write(&path, format!("fio version 2 iolog\n/f add\n/f open\n{lines}")).unwrap();
        path.display().to_string()
    });
    let options =
        "--drive=femu-32g --scale=1/1024 --precondition --wrap --op=40,50 --gc=greedy,fifo";
    let given = traces.iter().map(String::as_str).chain(options.split(' '));
    let command = Arguments::augment_args(clap::Command::new("replay").no_binary_name(true));
    let matches = command.try_get_matches_from(given).unwrap();
    let arguments = Arguments::from_arg_matches(&matches).unwrap();
    let (jobs, stop) = (jobs(&arguments).unwrap(), AtomicBool::new(false));
    let performed = |drives: Prepared, threads| {
        let (drives, order) = shared(&jobs, drives, threads);
        let (never, tell) = (AtomicBool::new(false), |_: &str, _| {});
        let watch = Watch { stop: &never, tell: &tell };
        let seen = Seen::of(jobs.iter().map(|job| job.label.clone()).collect(), Some(&watch));
        let (runs, failed) = perform_shared(&jobs, (&drives, &order), threads, &stop, &seen);
        assert!(failed.is_empty(), "{failed:?}");
        (serde_json::to_string(&runs).unwrap(), drives.aged())
    };
    let (alone, aged) = performed(Prepared::none(), 1);
    assert_eq!((jobs.len(), aged), (12, 12));
    for threads in [1, 2] {
        let (runs, aged) = performed(Prepared::within(1 << 30), threads);
        assert!(runs == alone && aged == 4, "{threads}: {aged}");
    }
}
