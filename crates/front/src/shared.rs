//! The file system behind its lock, as all threads of a mount see it.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use dovetail_vfs::{Attr, Error, FileSystem, FsyncRest, Ino, Moment, SharedCalls};
use fuser::Errno;

use crate::clock::Clock;
use crate::convert::errno;
use crate::faults::Faults;
use crate::flusher::{Flush, Flusher};
use crate::operation::Operation;

pub(crate) type BoxedFileSystem = Box<dyn FileSystem + Send + Sync>;

/// State that the threads of a mount share.
#[derive(Clone)]
pub(crate) struct Shared {
    inner: Arc<Inner>,
}

struct Inner {
    /// `None` when the mount has ended. Shared by those whose calls change nothing but bytes of blocks.
    fs: RwLock<Option<BoxedFileSystem>>,
    /// Those that wait; whoever has `leader` does them all.
    fsyncs: Mutex<Vec<Arc<Fsync>>>,
    leader: Mutex<()>,
    flusher: Option<Flusher>,
    clock: Clock,
    faults: Faults,
}

/// An fsync that waits for its turn.
struct Fsync {
    ino: Ino,
    data_only: bool,
    done: Mutex<Option<Result<(), Error>>>,
}

impl Fsync {
    fn finish(&self, result: Result<(), Error>) {
        *self.done.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    }

    /// The result, if someone else has done it.
    fn result(&self) -> Option<Result<(), Error>> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Shared {
    pub(crate) fn new(
        fs: BoxedFileSystem,
        faults: Faults,
        flush: Option<Flush>,
        clock: Clock,
    ) -> Self {
        let inner = Inner {
            fs: RwLock::new(Some(fs)),
            fsyncs: Mutex::default(),
            leader: Mutex::default(),
            flusher: flush.map(Flusher::new),
            clock,
            faults,
        };
        Self { inner: Arc::new(inner) }
    }

    /// The time of the mount.
    pub(crate) fn now(&self) -> Moment {
        (self.inner.clock)()
    }

    /// Calls the file system for an operation that the log has.
    pub(crate) fn serve<T>(
        &self,
        operation: Operation,
        work: impl FnOnce(&mut dyn FileSystem) -> Result<T, Error>,
    ) -> Result<T, Errno> {
        operation.logged(|| self.call(work))
    }

    /// Reads, beside others who read, if the file system can.
    pub(crate) fn read(&self, ino: Ino, offset: u64, into: &mut [u8]) -> Result<usize, Errno> {
        Operation::new("read", ino).logged(|| {
            if let Some(read) = self.ask(|fs| fs.read(ino, offset, into))? {
                return Ok(read);
            }
            // the others wait while the way to the content is read, not the content
            let bytes = offset..offset.saturating_add(into.len() as u64);
            let prepare_or_read = |fs: &mut dyn FileSystem| match fs.prepare_shared_read(ino, bytes)
            {
                Ok(true) => Ok(None),
                Ok(false) | Err(_) => fs.read(ino, offset, into).map(Some),
            };
            if let Some(read) = self.call(prepare_or_read)? {
                return Ok(read);
            }
            match self.ask(|fs| fs.read(ino, offset, into))? {
                Some(read) => Ok(read),
                None => self.call(|fs| fs.read(ino, offset, into)),
            }
        })
    }

    /// Writes, beside others who read and write, if `ask` has an answer, or else alone with `work`.
    pub(crate) fn write(
        &self,
        ino: Ino,
        ask: impl FnOnce(&dyn SharedCalls) -> Option<usize>,
        work: impl FnOnce(&mut dyn FileSystem) -> Result<usize, Error>,
    ) -> Result<usize, Errno> {
        Operation::new("write", ino).logged(|| match self.ask(ask)? {
            Some(written) => Ok(written),
            None => self.call(work),
        })
    }

    /// The attributes of an inode, as [`Self::read`] its content.
    pub(crate) fn getattr(&self, ino: Ino) -> Result<Attr, Errno> {
        Operation::new("getattr", ino).logged(|| match self.ask(|fs| fs.getattr(ino))? {
            Some(attr) => Ok(attr),
            None => self.call(|fs| fs.getattr(ino)),
        })
    }

    /// Asks the file system beside others who do the same; no answer means that it is to be called.
    fn ask<T>(&self, ask: impl FnOnce(&dyn SharedCalls) -> Option<T>) -> Result<Option<T>, Errno> {
        let fs = self.inner.fs.read().map_err(|_| Errno::EIO)?;
        Ok(fs.as_ref().ok_or(Errno::EIO)?.shared().and_then(ask))
    }

    /// Calls the file system. After the end of the mount, or of a thread that died in a call, all
    /// that comes is EIO.
    pub(crate) fn call<T>(
        &self,
        work: impl FnOnce(&mut dyn FileSystem) -> Result<T, Error>,
    ) -> Result<T, Errno> {
        self.told(self.in_call(work)?)
    }

    fn in_call<T>(&self, work: impl FnOnce(&mut dyn FileSystem) -> T) -> Result<T, Errno> {
        let mut fs = self.inner.fs.write().map_err(|_| Errno::EIO)?;
        let fs = fs.as_mut().ok_or(Errno::EIO)?;
        fs.set_now(self.now());
        Ok(work(fs.as_mut()))
    }

    /// Makes a file survive a power cut. The device is flushed without the lock where the file
    /// system allows it, and others use the file system meanwhile.
    pub(crate) fn fsync(&self, ino: Ino, data_only: bool) -> Result<(), Errno> {
        Operation::new("fsync", ino).logged(|| {
            match (self.call(|fs| fs.begin_fsync(ino, data_only))?, &self.inner.flusher) {
                (FsyncRest::Nothing, _) => Ok(()),
                (FsyncRest::Flush, Some(flusher)) => self.flush_for(flusher, ino, data_only),
                _ => self.fsync_in_turn(ino, data_only),
            }
        })
    }

    /// The flush that is all that is left of an fsync. A failed one is told to the file system by
    /// its own, after which it takes no more changes.
    fn flush_for(&self, flusher: &Flusher, ino: Ino, data_only: bool) -> Result<(), Errno> {
        let Err(failed) = flusher.flush() else { return Ok(()) };
        self.call(|fs| fs.fsync(ino, data_only))?;
        self.told(Err(Error::Io(failed)))
    }

    /// The fsync together with those for which others wait.
    fn fsync_in_turn(&self, ino: Ino, data_only: bool) -> Result<(), Errno> {
        let own = Arc::new(Fsync { ino, data_only, done: Mutex::default() });
        self.fsyncs().push(Arc::clone(&own));
        let leader = self.inner.leader.lock().map_err(|_| Errno::EIO)?;
        if let Some(done) = own.result() {
            return self.told(done);
        }
        let all = std::mem::take(&mut *self.fsyncs());
        let done = self.fsync_all(&all).map(|()| own.result());
        drop(leader);
        self.told(done?.unwrap_or(Err(Error::Io("an fsync was lost".into()))))
    }

    fn told<T>(&self, result: Result<T, Error>) -> Result<T, Errno> {
        result.map_err(|error| {
            self.inner.faults.meet(&error);
            errno(&error)
        })
    }

    fn fsyncs(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Fsync>>> {
        self.inner.fsyncs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does all of those that wait.
    fn fsync_all(&self, all: &[Arc<Fsync>]) -> Result<(), Errno> {
        let files: Vec<(Ino, bool)> =
            all.iter().map(|fsync| (fsync.ino, fsync.data_only)).collect();
        let results = match self.fsync_in_steps(&files)? {
            Some(result) => vec![result; all.len()],
            None => self.in_call(|fs| fs.fsync_several(&files))?,
        };
        all.iter().zip(results).for_each(|(fsync, result)| fsync.finish(result));
        Ok(())
    }

    /// The fsync of several files with flushes that need no lock, if there is a way; the result is
    /// that of all.
    fn fsync_in_steps(&self, files: &[(Ino, bool)]) -> Result<Option<Result<(), Error>>, Errno> {
        let Some(flusher) = &self.inner.flusher else { return Ok(None) };
        let mut rest = match self.in_call(|fs| fs.begin_fsyncs(files))? {
            Ok(rest) => rest,
            Err(error) if files.len() == 1 => return Ok(Some(Err(error))),
            Err(error) => {
                // whose it is, each file's own fsync tells
                self.inner.faults.meet(&error);
                return Ok(None);
            }
        };
        while rest == FsyncRest::Flush {
            let flushed = flusher.flush();
            match self.in_call(|fs| fs.go_on_after_flush(flushed))? {
                Ok(left) => rest = left,
                Err(error) => return Ok(Some(Err(error))),
            }
        }
        Ok((rest == FsyncRest::Nothing).then_some(Ok(())))
    }

    /// Tells how often the errors came that were told once.
    pub(crate) fn tell_counts(&self) {
        self.inner.faults.tell_counts();
    }

    /// Takes the file system away from the requests that may still come.
    pub(crate) fn take(&self) -> Option<BoxedFileSystem> {
        let mut fs = self.inner.fs.write().ok()?.take()?;
        fs.set_now(self.now());
        Some(fs)
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;
    use std::time::{Duration, Instant};

    use dovetail_ext::mkfs::{Kind, MkfsOptions};
    use dovetail_testkit::Model;
    use dovetail_time::SimTime;
    use dovetail_vfs::{Caller, Limits};

    use super::*;
    use crate::clock;
    use crate::faults::Fault;

    fn quiet() -> Faults {
        Faults::new(Box::new(|_| {}), false)
    }

    fn model() -> Model {
        Model::new(Limits::default(), &Caller::default())
    }

    /// Each waits for the lock that the test holds, and none is lost.
    #[test]
    fn fsyncs_that_wait_are_done_together_and_each_is_answered() {
        let shared = Shared::new(Box::new(model()), quiet(), None, clock::start());
        let root = shared.call(|fs| Ok(fs.root())).unwrap();
        let results: Vec<Result<(), i32>> = std::thread::scope(|scope| {
            let held = shared.inner.leader.lock().unwrap();
            let sync = |ino| {
                let shared = &shared;
                scope.spawn(move || shared.fsync(ino, false).map_err(|error| error.code()))
            };
            let threads = [sync(root), sync(Ino(77)), sync(root)];
            while shared.fsyncs().len() < 3 {
                std::thread::yield_now();
            }
            drop(held);
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(results[0].is_ok() && results[2].is_ok() && results[1].is_err(), "{results:?}");
        assert!(shared.fsyncs().is_empty());
    }

    const BLOCKS: u64 = 16_384;

    fn f2fs() -> BoxedFileSystem {
        let mut device = dovetail_block::MemoryDevice::new(BLOCKS);
        dovetail_f2fs::mkfs::mkfs(&mut device, &Default::default()).unwrap();
        let options = dovetail_f2fs::Options::default();
        Box::new(dovetail_f2fs::F2fs::mount(device, options, clock::start()()).unwrap())
    }

    fn ext4() -> BoxedFileSystem {
        let mut device = dovetail_block::MemoryDevice::new(BLOCKS);
        let options = MkfsOptions::new(Kind::Ext4);
        dovetail_ext::mkfs::mkfs(&mut device, &options).unwrap();
        let options = dovetail_ext::Options::default();
        Box::new(dovetail_ext::Ext::mount(device, options, SimTime::ZERO).unwrap())
    }

    /// A new file on a file system whose image `flush` flushes.
    fn with_file(
        mut fs: BoxedFileSystem,
        flush: impl Fn() -> std::io::Result<()> + Send + Sync + 'static,
    ) -> (Shared, Ino) {
        let (root, node) = (fs.root(), dovetail_vfs::NewNode::file(0o644));
        let file = fs.create(&Caller::default(), root, b"file", &node).unwrap().ino;
        fs.sync().unwrap();
        (Shared::new(fs, quiet(), Some(Box::new(flush)), clock::start()), file)
    }

    fn write(shared: &Shared, file: Ino, bytes: &[u8]) {
        shared.call(|fs| fs.write(&Caller::default(), file, 0, bytes)).unwrap();
    }

    /// The commit of the one who leads has the files of all.
    #[test]
    fn those_who_wait_share_a_commit_and_its_failure() {
        for fails in [false, true] {
            let flush = move || if fails { Err(std::io::Error::other("failed")) } else { Ok(()) };
            let (shared, file) = with_file(ext4(), flush);
            write(&shared, file, &[1; 8192]);
            let results: Vec<bool> = std::thread::scope(|scope| {
                let held = shared.inner.leader.lock().unwrap();
                let sync = || scope.spawn(|| shared.fsync(file, false).is_ok());
                let threads = [sync(), sync(), sync()];
                while shared.fsyncs().len() < 3 {
                    std::thread::yield_now();
                }
                drop(held);
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(results, [!fails; 3]);
            let commits = shared.call(|fs| fs.begin_fsync(file, false)).unwrap_or(FsyncRest::Fsync);
            assert_eq!(commits, if fails { FsyncRest::Fsync } else { FsyncRest::Flush });
        }
    }

    /// F2FS needs one flush, a commit of ext4 two.
    #[test]
    fn others_write_while_an_fsync_waits_for_its_flushes() {
        for (fs, flushes) in [(f2fs(), 1), (ext4(), 2)] {
            let ((starts, started), (go, gone)) = (channel(), channel());
            let gone = Mutex::new(gone);
            let (shared, file) = with_file(fs, move || {
                starts.send(()).unwrap();
                gone.lock().unwrap().recv().map_err(std::io::Error::other)
            });
            write(&shared, file, &[1; 8192]);
            std::thread::scope(|scope| {
                let fsync = scope.spawn(|| shared.fsync(file, false));
                for flush in 0..flushes {
                    started.recv().unwrap();
                    write(&shared, file, &[2 + flush; 8192]); // for ever if the fsync has the lock
                    assert!(!fsync.is_finished());
                    go.send(()).unwrap();
                }
                fsync.join().unwrap().unwrap();
            });
        }
    }

    #[test]
    fn an_fsync_whose_flush_fails_is_an_error() {
        for fs in [f2fs(), ext4()] {
            let (shared, file) = with_file(fs, || Err(std::io::Error::other("failed")));
            write(&shared, file, &[1; 8192]);
            assert_eq!(shared.fsync(file, false).unwrap_err().code(), Errno::EIO.code());
            assert!(shared.fsync(file, false).is_err());
        }
    }

    /// Each waits within its call until the other is there as well.
    #[test]
    fn calls_that_change_nothing_go_on_beside_each_other() {
        let shared = Shared::new(Box::new(model()), quiet(), None, clock::start());
        let root = shared.call(|fs| Ok(fs.root())).unwrap();
        let (met, both) = (AtomicUsize::new(0), Duration::from_secs(60));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let meet = |fs: &dyn SharedCalls| {
                        let (begin, attr) = (Instant::now(), fs.getattr(root));
                        met.fetch_add(1, Ordering::Relaxed);
                        while met.load(Ordering::Relaxed) < 2 {
                            assert!(begin.elapsed() < both, "the other one waits for the lock");
                            std::thread::yield_now();
                        }
                        attr
                    };
                    assert!(shared.ask(meet).unwrap().is_some());
                });
            }
        });
        assert_eq!(shared.getattr(root).unwrap(), shared.call(|fs| fs.getattr(root)).unwrap());
        assert_eq!(shared.read(root, 0, &mut [0]).unwrap_err().code(), Errno::EISDIR.code());
        drop(shared.take());
        assert_eq!(shared.read(root, 0, &mut [0]).unwrap_err().code(), Errno::EIO.code());
    }

    #[test]
    fn serious_errors_are_told_by_kind_and_a_missing_name_never() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let listener = Arc::clone(&told);
        let listen =
            Box::new(move |fault: Fault<'_>| listener.lock().unwrap().push(fault.to_string()));
        let shared =
            Shared::new(Box::new(model()), Faults::new(listen, false), None, clock::start());
        let failed = || Error::Io("failed".into());
        for error in
            [Error::NotFound, failed(), Error::Corrupt("bad".into()), failed(), Error::NotFound]
        {
            let expected = error.errno();
            assert_eq!(shared.call(|_| Err::<(), _>(error)).unwrap_err().code(), expected);
        }
        assert_eq!(*told.lock().unwrap(), ["failed", "bad"]);
        drop(shared.take());
        assert_eq!(shared.call(|fs| fs.statfs()).unwrap_err().code(), Errno::EIO.code());
        shared.tell_counts();
        assert_eq!(told.lock().unwrap()[2..], ["failed: and 1 more error of this kind"]);
    }
}
