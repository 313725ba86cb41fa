//! Initial file sets.
