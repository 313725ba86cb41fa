//! Explorations that must find something, and such that must find nothing.
