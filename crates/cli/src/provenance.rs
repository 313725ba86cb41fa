//! The program and the call, as results and reports name them.

use std::ffi::OsString;
use std::path::Path;

use dovetail_lab::results::Provenance;

/// Options with a value that say only where results go, or how many run at a time.
const WITH_VALUE: [&str; 7] =
    ["--jobs", "-j", "--keep", "--report", "--table", "--columns", "--sort"];
/// Options with a value that may be left out, and stands behind a `=`; of `reproduce` it is a word of
/// its own.
const FILES: [&str; 3] = ["--json", "--csv", "--fio-json"];
/// Options without a value of this kind.
const WITHOUT: [&str; 1] = ["--verbose"];

/// The program of this process, and the call by the words behind the program's name.
pub(crate) fn provenance(words: &[OsString]) -> Provenance {
    Provenance {
        version: env!("CARGO_PKG_VERSION").into(),
        commit: env!("DOVETAIL_COMMIT").into(),
        command: command(words),
    }
}

/// The command line that gives the same results.
fn command(words: &[OsString]) -> String {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let is_reproduce = words.iter().any(|word| word == "reproduce");
    let mut kept = vec!["dovetail".to_owned()];
    let mut words = words.iter().map(AsRef::as_ref);
    while let Some(word) = words.next() {
        if word == "--" {
            kept.push(word.into());
            kept.extend(words.by_ref().map(quoted));
        } else if WITH_VALUE.contains(&word) || (is_reproduce && FILES.contains(&word)) {
            words.next();
        } else if !is_left_out(word) {
            kept.push(quoted(&named(word)));
        }
    }
    kept.join(" ")
}

/// A word that is an option of that kind, with or without its value.
fn is_left_out(word: &str) -> bool {
    let option = word.split_once('=').map_or(word, |(option, _)| option);
    let is_short = |letter: char| {
        word.strip_prefix('-')
            .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c == letter))
    };
    let is_jobs =
        word.strip_prefix("-j").is_some_and(|n| n.trim_start_matches('=').parse::<u32>().is_ok());
    let all = WITH_VALUE.iter().chain(&FILES).chain(&WITHOUT);
    all.into_iter().any(|known| *known == option) || is_short('v') || is_jobs
}

/// A word without the folders of the files that it names: results say nothing of a machine's folders.
fn named(word: &str) -> String {
    let (option, values) = match word.split_once('=') {
        Some((option, values)) if word.starts_with("--") => (format!("{option}="), values),
        _ => (String::new(), word),
    };
    let name = |value: &str| {
        let path = Path::new(value);
        let name = path.file_name().and_then(|name| name.to_str()).filter(|_| path.is_file());
        name.unwrap_or(value).to_owned()
    };
    if Path::new(values).is_file() {
        // also one with a comma in its path
        return option + &name(values);
    }
    let names: Vec<String> = values.split(',').map(name).collect();
    // two files of one name are told apart by their paths
    let is_twice = |name: &String| names.iter().filter(|other| *other == name).count() > 1;
    let shown = values.split(',').zip(&names);
    let shown = shown.map(|(value, name)| if is_twice(name) { value } else { name.as_str() });
    option + &shown.collect::<Vec<_>>().join(",")
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=+.,:/@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(line: &str) -> String {
        command(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn what_does_not_decide_results_is_left_out() {
        for (line, expected) in [
            ("bench j.fio -s f2fs --json --jobs 2 -D A=1", "dovetail bench j.fio -s f2fs -D A=1"),
            ("-vv bench j.fio --json=x.json -j4 -s f2fs", "dovetail bench j.fio -s f2fs"),
            ("replay t --report r.html --csv=- --op 7,28", "dovetail replay t --op 7,28"),
            ("reproduce f --json x.json --jobs=1 --full --keep d", "dovetail reproduce f --full"),
            ("linux run --json -- dd --json x", "dovetail linux run -- dd --json x"),
            ("bench j.fio --table=rows --fill 50%", "dovetail bench j.fio --fill 50%"),
        ] {
            assert_eq!(kept(line), expected);
        }
    }

    #[test]
    fn files_are_named_without_their_folders() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, "").unwrap();
            path.display().to_string()
        };
        let (job, stack) = (path("job.fio"), path("mine.toml"));
        let command = kept(&format!("bench {job} --stack={stack},ext4 -D DIR=/no/file"));
        assert_eq!(command, "dovetail bench job.fio --stack=mine.toml,ext4 -D DIR=/no/file");
        std::fs::create_dir(folder.path().join("a,b")).unwrap();
        let job = path("a,b/job.fio");
        assert_eq!(kept(&format!("bench {job} -s f2fs")), "dovetail bench job.fio -s f2fs");
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        let words = ["bench", "my job.fio", "it's", "$HOME", ""].map(OsString::from);
        assert_eq!(command(&words), r"dovetail bench 'my job.fio' 'it'\''s' '$HOME' ''");
    }
}
