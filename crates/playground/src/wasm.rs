//! The simulator as a worker's script calls it: bytes in, messages out as JSON.
//!
//! The script puts a [`Request`] as JSON into memory that [`allocate`] gave, and calls [`start`],
//! which returns when the run has ended. Until then the program calls the script: `is_due` asks
//! whether it wants to be told, `tell` hands it a message as JSON.

#![allow(unsafe_code, reason = "memory is shared with a script, which knows no references")]

use std::panic;

use crate::{Listener, Message, Request, play};

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    #[link_name = "isDue"]
    fn is_due() -> u32;
    fn tell(text: *const u8, len: usize);
}

/// The worker's script.
struct Script;

impl Listener for Script {
    fn is_due(&self) -> bool {
        // SAFETY: takes nothing and gives a number.
        unsafe { is_due() != 0 }
    }

    fn tell(&self, message: &Message) {
        // Strings and numbers under fixed names cannot fail to serialize.
        let text = serde_json::to_string(message).unwrap_or_default();
        // SAFETY: the script reads `len` bytes there before it returns.
        unsafe { tell(text.as_ptr(), text.len()) };
    }
}

/// Memory for a request of `len` bytes, which [`start`] frees.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn allocate(len: usize) -> *mut u8 {
    Box::into_raw(vec![0_u8; len].into_boxed_slice()).cast()
}

/// Performs the request that stands in memory which [`allocate`] gave for `len` bytes.
///
/// # Safety
/// `text` came from `allocate(len)`, and is given once.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn start(text: *mut u8, len: usize) {
    panic::set_hook(Box::new(|panic| {
        Script.tell(&Message::Failed {
            message: format!("{panic}: this is a fault of dovetail, please report it"),
        });
    }));
    // SAFETY: as the caller has to see to.
    let text = unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(text, len)) };
    match serde_json::from_slice::<Request>(&text) {
        Ok(request) => play(&request, &Script),
        Err(error) => Script.tell(&Message::Failed { message: error.to_string() }),
    }
}
