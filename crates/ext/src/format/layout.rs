//! Proof at compile time that a structure has the size and the offsets of the format.

/// Fails the build unless `$type` has `$size` bytes and each named field its offset.
macro_rules! prove_layout {
    ($type:ty, $size:expr, { $($offset:literal => $field:ident),* $(,)? }) => {
        const _: () = {
            assert!(size_of::<$type>() == $size);
            $(assert!(std::mem::offset_of!($type, $field) == $offset);)*
        };
    };
}

pub(super) use prove_layout;
