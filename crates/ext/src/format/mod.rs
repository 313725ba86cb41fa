//! The bytes of the on-disk format: encoders and decoders, no device.
