//! What a device or file system is asked to do: block traces in the formats people have.
//!
//! Everything here is an iterator of [`Request`]s in order of time; nothing here knows a device. A trace is
//! streamed ([`trace::TraceReader`]), never loaded whole.

mod request;
pub mod trace;

pub use request::{Op, Request};
