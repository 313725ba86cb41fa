//! Choices, as pure functions of what they depend on.

mod goal;
mod orlov;
mod window;

pub(super) use goal::{Neighbour, goal};
pub(super) use orlov::{DirGroup, directory_group, file_group};
pub(super) use window::{WindowFacts, window_size};
