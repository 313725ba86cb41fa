//! The file systems that the tool is tested on, each a type.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::process::Command;

use dovetail_block::{MemoryDevice, Scheduler};
use dovetail_time::SimTime;
use dovetail_vfs::{Devirtualize, FileSystem, Simulated};
use {dovetail_ext as ext, dovetail_f2fs as f2fs};

/// A file system that can be made and mounted on any device, with checks of what it leaves.
pub(crate) trait Kind {
    /// It, mounted.
    type Fs<D: Scheduler>: FileSystem + Devirtualize + Simulated;
    const NAME: &'static str;
    /// Blocks of a device that is large enough for the tests.
    const BLOCKS: u64;

    fn make<D: Scheduler>(device: &mut D);
    fn try_mount<D: Scheduler>(device: D, now: SimTime) -> Result<Self::Fs<D>, String>;
    fn unmount<D: Scheduler>(fs: Self::Fs<D>) -> D;
    /// As after a crash: what is only in memory is lost.
    fn into_device<D: Scheduler>(fs: Self::Fs<D>) -> D;
    fn device<D: Scheduler>(fs: &Self::Fs<D>) -> &D;
    fn device_mut<D: Scheduler>(fs: &mut Self::Fs<D>) -> &mut D;
    /// Error message of opening the volume without its drive.
    fn opened(device: MemoryDevice) -> String;
    /// Our own check finds nothing: of an image, or of a devirtualised volume on its drive.
    fn check<D: Scheduler>(device: D, what: &str);
    /// The kernel's tool that checks, with arguments that leave the image as it is.
    const REFEREE: &'static [&'static str];

    fn mount<D: Scheduler>(device: D, now: SimTime) -> Self::Fs<D> {
        Self::try_mount(device, now).unwrap_or_else(|error| panic!("{}: {error}", Self::NAME))
    }

    /// The tool says nothing against an image, either.
    fn check_all(image: &MemoryDevice, what: &str) {
        Self::check(image.clone(), what);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image");
        image.write_to(&path).unwrap();
        let checked =
            Command::new(Self::REFEREE[0]).args(&Self::REFEREE[1..]).arg(&path).output().unwrap();
        let said = String::from_utf8_lossy(&checked.stdout);
        assert!(checked.status.success() && !said.contains("[FIX]"), "{what}: {said}");
    }
}

pub(crate) struct Ext3;
pub(crate) struct Ext4;
pub(crate) struct F2fs;

macro_rules! ext {
    ($name:ident) => {
        impl Kind for $name {
            type Fs<D: Scheduler> = ext::Ext<D>;
            const NAME: &'static str = stringify!($name);
            const BLOCKS: u64 = 8192;
            const REFEREE: &'static [&'static str] = &["e2fsck", "-fn"];

            fn make<D: Scheduler>(device: &mut D) {
                let options = ext::mkfs::MkfsOptions {
                    block_size: Some(4096),
                    journal_blocks: Some(1024),
                    time: 1_700_000_000,
                    ..ext::mkfs::MkfsOptions::new(ext::mkfs::Kind::$name)
                };
                ext::mkfs::mkfs(device, &options).unwrap();
            }

            fn try_mount<D: Scheduler>(device: D, now: SimTime) -> Result<Self::Fs<D>, String> {
                let options = ext::Options {
                    physical_pointers: true,
                    page_cache_bytes: 1 << 20,
                    ..Default::default()
                };
                ext::Ext::mount(device, options, now).map_err(|error| error.to_string())
            }

            fn unmount<D: Scheduler>(fs: Self::Fs<D>) -> D {
                fs.unmount().unwrap()
            }

            fn into_device<D: Scheduler>(fs: Self::Fs<D>) -> D {
                fs.into_device()
            }

            fn device<D: Scheduler>(fs: &Self::Fs<D>) -> &D {
                fs.device()
            }

            fn device_mut<D: Scheduler>(fs: &mut Self::Fs<D>) -> &mut D {
                fs.device_mut()
            }

            fn opened(device: MemoryDevice) -> String {
                ext::Volume::open(device).unwrap_err().to_string()
            }

            fn check<D: Scheduler>(device: D, what: &str) {
                let report = ext::fsck::check(device, ext::fsck::Options::default()).unwrap();
                assert!(report.is_clean(), "{what}: {report:?}");
            }
        }
    };
}

ext!(Ext3);
ext!(Ext4);

impl Kind for F2fs {
    type Fs<D: Scheduler> = f2fs::F2fs<D>;
    const NAME: &'static str = "F2FS";
    const BLOCKS: u64 = 32_768;
    const REFEREE: &'static [&'static str] = &["fsck.f2fs", "--dry-run", "-f"];

    fn make<D: Scheduler>(device: &mut D) {
        f2fs::mkfs::mkfs(device, &f2fs::mkfs::MkfsOptions::default()).unwrap();
    }

    fn try_mount<D: Scheduler>(device: D, now: SimTime) -> Result<Self::Fs<D>, String> {
        let options = f2fs::Options {
            physical_pointers: true,
            page_cache_bytes: 1 << 20,
            node_cache_bytes: 1 << 18,
            ..Default::default()
        };
        f2fs::F2fs::mount(device, options, now).map_err(|error| error.to_string())
    }

    fn unmount<D: Scheduler>(fs: Self::Fs<D>) -> D {
        fs.unmount().unwrap()
    }

    fn into_device<D: Scheduler>(fs: Self::Fs<D>) -> D {
        fs.into_device()
    }

    fn device<D: Scheduler>(fs: &Self::Fs<D>) -> &D {
        fs.device()
    }

    fn device_mut<D: Scheduler>(fs: &mut Self::Fs<D>) -> &mut D {
        fs.device_mut()
    }

    fn opened(device: MemoryDevice) -> String {
        f2fs::Volume::open(device).unwrap_err().to_string()
    }

    fn check<D: Scheduler>(device: D, what: &str) {
        let report = f2fs::fsck::check(device, f2fs::fsck::Options::default(), |_| {}).unwrap();
        assert!(report.is_clean(), "{what}: {report:?}");
    }
}
