//! Flushes of the device that several fsyncs share.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Makes durable what the file system has written to its device so far, all of it.
pub(crate) type Flush = Box<dyn Fn() -> io::Result<()> + Send + Sync>;

/// One flush at a time. Those who wait for their turn are content with one that began after they
/// came. A failure lasts: the host tells it once, and a later flush would succeed without what was
/// lost.
pub(crate) struct Flusher {
    flush: Flush,
    /// Flushes that have begun.
    begun: AtomicU64,
    /// The last flush that succeeded, counted from 1, or why one failed.
    succeeded: Mutex<Result<u64, String>>,
}

impl Flusher {
    pub(crate) fn new(flush: Flush) -> Self {
        Self { flush, begun: AtomicU64::new(0), succeeded: Mutex::new(Ok(0)) }
    }

    /// Makes durable what was written before this call.
    ///
    /// # Errors
    /// That of this flush or of one before, as a sentence. After a thread that died in a flush,
    /// there is no other.
    pub(crate) fn flush(&self) -> Result<(), String> {
        let before = self.begun.load(Ordering::SeqCst);
        let died = |_| "a flush of the image ended with a panic".to_string();
        let mut succeeded = self.succeeded.lock().map_err(died)?;
        if succeeded.clone()? > before {
            return Ok(());
        }
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let flushed = (self.flush)().map_err(|why| format!("the image cannot be flushed: {why}"));
        *succeeded = flushed.clone().map(|()| number);
        flushed
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// One comes while a flush is under way, which may have missed what it wrote.
    #[test]
    fn a_flush_under_way_serves_nobody_else() {
        let ((starts, started), (go, gone)) = (channel(), channel());
        let gone = Mutex::new(gone);
        let flush = move || {
            starts.send(()).unwrap();
            gone.lock().unwrap().recv().map_err(io::Error::other)
        };
        let flusher = Flusher::new(Box::new(flush));
        std::thread::scope(|scope| {
            let first = scope.spawn(|| flusher.flush());
            started.recv().unwrap();
            let second = scope.spawn(|| flusher.flush());
            go.send(()).unwrap();
            first.join().unwrap().unwrap();
            started.recv().unwrap();
            go.send(()).unwrap();
            second.join().unwrap().unwrap();
        });
        assert_eq!(flusher.begun.into_inner(), 2);
    }

    #[test]
    fn one_that_began_later_serves_those_who_wait() {
        let flusher = Flusher::new(Box::new(|| Ok(())));
        let mut succeeded = flusher.succeeded.lock().unwrap();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| flusher.flush());
            *succeeded = Ok(1); // as if another had flushed meanwhile
            drop(succeeded);
            waits.join().unwrap().unwrap();
        });
        assert_eq!(flusher.begun.into_inner(), 0);
    }

    #[test]
    fn after_a_failed_flush_none_succeeds() {
        let fails = Mutex::new(vec![false, true]);
        let flush = move || match fails.lock().unwrap().pop() {
            Some(true) => Err(io::Error::other("failed")),
            _ => Ok(()),
        };
        let flusher = Flusher::new(Box::new(flush));
        assert!(flusher.flush().is_err() && flusher.flush().is_err());
        assert_eq!(flusher.begun.into_inner(), 1);
    }
}
