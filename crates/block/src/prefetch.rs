//! Asking the processor for memory before it is needed.

/// Asks for the cache line of a value. A simulated random write waits for memory longer than for all
/// else together: whoever knows which entry comes soon asks for it, and goes on.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code, reason = "measured hot path; there is no safe prefetch")]
#[inline]
pub fn prefetch<T>(value: &T) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: prefetching has no effect on memory and the address is that of a live reference.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(value).cast()) }
}

/// Asks for the cache line of a value; nothing on this processor.
#[cfg(not(target_arch = "x86_64"))]
pub fn prefetch<T>(_: &T) {}
