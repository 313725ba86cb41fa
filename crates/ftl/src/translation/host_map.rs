//! The map of the host's pages: the dense table that most drives have is asked without a detour
//! through a table of functions, since each program asks.

use std::ops::{Deref, DerefMut};

use dovetail_nand::{Lpn, Ppn};

use super::direct_map::DirectMap;
use crate::config::DriveConfig;
use crate::mapping::{self, MapCost, Mapping, PageMap};

/// A map of any scheme.
#[derive(Clone, Debug)]
pub(super) enum HostMap {
    /// The dense table.
    Dense(PageMap),
    /// Any other.
    Other(Box<dyn Mapping>),
}

impl HostMap {
    /// As the configuration says, empty.
    pub(super) fn new(config: &DriveConfig) -> Self {
        let shape = config.map_shape();
        if let Some(space) = config.device_space() {
            let map = (config.scheme.build)(shape);
            return Self::Other(Box::new(DirectMap::new(map, Lpn(space.first.0), space.blocks)));
        }
        match mapping::dense(config.scheme, shape) {
            Some(map) => Self::Dense(map),
            None => Self::Other((config.scheme.build)(shape)),
        }
    }

    /// [`Mapping::lookup`].
    #[inline]
    pub(super) fn lookup(&self, lpn: Lpn) -> (Option<Ppn>, MapCost) {
        match self {
            Self::Dense(map) => map.lookup(lpn),
            Self::Other(map) => map.lookup(lpn),
        }
    }

    /// [`Mapping::update`].
    #[inline]
    pub(super) fn update(&mut self, lpn: Lpn, to: Option<Ppn>) -> (Option<Ppn>, MapCost) {
        match self {
            Self::Dense(map) => map.update(lpn, to),
            Self::Other(map) => map.update(lpn, to),
        }
    }

    /// [`Mapping::expect`].
    #[inline]
    pub(super) fn expect(&self, lpn: Lpn) {
        match self {
            Self::Dense(map) => map.expect(lpn),
            Self::Other(map) => map.expect(lpn),
        }
    }
}

impl Deref for HostMap {
    type Target = dyn Mapping;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Dense(map) => map,
            Self::Other(map) => &**map,
        }
    }
}

impl DerefMut for HostMap {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Dense(map) => map,
            Self::Other(map) => &mut **map,
        }
    }
}
