//! Finished runs, kept in a folder: what was ended goes on with the runs that are left.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::{fs, io};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A folder of results, each a file, by what decides them.
#[derive(Debug)]
pub struct FinishedRuns {
    folder: PathBuf,
    program: String,
    failure: Mutex<Option<String>>,
}

/// A file. Its name is a hash of the key, so the key stands in it.
#[derive(Serialize, Deserialize)]
struct File<K, T> {
    key: K,
    result: T,
}

impl FinishedRuns {
    /// Opens a folder, and makes it if it is not there. Results that another `program` has kept
    /// there are not taken: it may be another version, in any words that tell them apart.
    ///
    /// # Errors
    /// The folder cannot be made, or not be written to.
    pub fn open(folder: &Path, program: String) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let probe = folder.join(format!("probe.{}.tmp", std::process::id()));
        fs::write(&probe, "")?;
        fs::remove_file(&probe)?;
        Ok(Self { folder: folder.into(), program, failure: Mutex::new(None) })
    }

    /// The result that is kept under a key; `None` also if its file cannot be read.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        let key = self.whole(key);
        let text = fs::read(self.path(&key)).ok()?;
        let file: File<String, T> = serde_json::from_slice(&text).ok()?;
        (file.key == key).then_some(file.result)
    }

    /// Keeps a result. If it cannot be kept, [`Self::failure`] says why: nothing is lost, but the
    /// run has to be done again.
    pub fn put<T: Serialize>(&self, key: &str, result: &T) {
        let key = self.whole(key);
        let path = self.path(&key);
        if let Err(error) = write(&path, &File { key, result }) {
            let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            failure.get_or_insert_with(|| format!("{}: {error}", path.display()));
        }
    }

    /// The reason why the first result that could not be kept was not.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The result under a key, made if it is not there; a failure is not kept.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn get_or<T: DeserializeOwned + Serialize, E>(
        &self,
        key: &str,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        if let Some(result) = self.get(key) {
            return Ok(result);
        }
        let result = make()?;
        self.put(key, &result);
        Ok(result)
    }

    fn whole(&self, key: &str) -> String {
        format!("{}: {key}", self.program)
    }

    fn path(&self, key: &str) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        self.folder.join(format!("{:016x}.json", hasher.finish()))
    }
}

/// Writes a file as a whole or not at all.
fn write<T: Serialize>(path: &Path, file: &File<String, T>) -> io::Result<()> {
    let begun = path.with_extension(format!("{}.tmp", std::process::id()));
    fs::write(&begun, serde_json::to_vec(file)?)?;
    fs::rename(&begun, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_found_by_its_key_and_program() {
        let folder = tempfile::tempdir().unwrap();
        let kept = |program: &str| FinishedRuns::open(folder.path(), program.into()).unwrap();
        kept("a").put("run 1", &0.1_f64);
        assert_eq!(kept("a").get("run 1"), Some(0.1_f64));
        assert_eq!(kept("a").get::<f64>("run 2"), None);
        assert_eq!(kept("b").get::<f64>("run 1"), None);
        let made = |make| kept("a").get_or::<f64, ()>("run 1", make);
        assert_eq!(made(|| panic!("it is there")), Ok(0.1));
    }

    #[test]
    fn a_torn_file_and_a_failure_leave_the_run_to_be_done() {
        let folder = tempfile::tempdir().unwrap();
        let kept = FinishedRuns::open(folder.path(), "a".into()).unwrap();
        kept.put("run", &7);
        let path = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        fs::write(&path, &fs::read(&path).unwrap()[..10]).unwrap();
        assert_eq!(kept.get::<u32>("run"), None);
        assert_eq!(kept.get_or("run", || Err::<u32, _>("stopped")), Err("stopped"));
        assert_eq!(kept.get_or::<_, ()>("run", || Ok(8)), Ok(8));
        assert_eq!(kept.get("run"), Some(8));
    }

    #[test]
    fn a_folder_that_is_gone_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let kept = FinishedRuns::open(folder.path(), "a".into()).unwrap();
        assert_eq!(kept.failure(), None);
        fs::remove_dir(folder.path()).unwrap();
        assert_eq!(kept.get_or::<_, ()>("run", || Ok(8)), Ok(8));
        assert!(kept.failure().is_some_and(|failure| failure.contains("No such file")));
        let file = folder.path();
        fs::write(file, "").unwrap();
        assert!(FinishedRuns::open(file, "a".into()).is_err());
    }
}
