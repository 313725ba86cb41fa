//! Repeats the failed tests of a run at its end: logs of long runs are often cut.

use std::io::{self, BufRead, Write};

/// Copies the output of `cargo test` line by line, and returns what the test runners said of
/// failures: from each line `failures:` to the runner's closing line.
///
/// # Errors
///
/// The output cannot be read or written.
pub(crate) fn copy(mut from: impl BufRead, mut to: impl Write) -> io::Result<Vec<u8>> {
    let (mut failures, mut is_failure, mut line) = (Vec::new(), false, Vec::new());
    while from.read_until(b'\n', &mut line)? > 0 {
        to.write_all(&line)?;
        is_failure |= line == b"failures:\n";
        if is_failure {
            failures.extend_from_slice(&line);
        }
        is_failure &= !line.starts_with(b"test result:");
        line.clear();
    }
    to.flush()?;
    Ok(failures)
}

#[cfg(test)]
mod tests {
    #[test]
    fn failures_are_kept_up_to_the_closing_line() {
        let runner = |rest: &str| format!("running 1 test\ntest a ... \n{rest}\nDoc-tests b\n");
        let failed = "failures:\n\n---- a stdout ----\nthread 'a' panicked\n\n\
                      failures:\n    a\n\ntest result: FAILED. 0 passed; 1 failed\n";
        let passed = "test result: ok. 1 passed; 0 failed\n";
        let all = [failed, passed, failed].map(runner).concat();
        let mut copied = Vec::new();
        let kept = super::copy(all.as_bytes(), &mut copied).unwrap();
        assert_eq!(copied, all.as_bytes());
        assert_eq!(kept, [failed, failed].concat().as_bytes());
    }
}
