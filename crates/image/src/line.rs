//! Files as `ls -l` shows them.

use dovetail_vfs::mode::{
    S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFREG, S_IFSOCK, S_ISGID, S_ISUID, S_ISVTX,
    is_device, is_symlink, kind,
};
use dovetail_vfs::{Attr, Error, Timestamp, shown};

use crate::Tree;

/// One line of a listing.
pub(crate) fn line(tree: &mut dyn Tree, attr: &Attr, name: &str) -> Result<String, Error> {
    let mode = mode_text(attr.mode);
    let size = match is_device(attr.mode) {
        true => format!("{}, {}", attr.rdev.0, attr.rdev.1),
        false => attr.size.to_string(),
    };
    let target = match is_symlink(attr.mode) {
        true => format!(" -> {}", shown(&tree.read_link(attr.ino)?)),
        false => String::new(),
    };
    let (uid, gid, links, time) = (attr.uid, attr.gid, attr.links, date(attr.mtime));
    Ok(format!("{mode} {links:>3} {uid:>5} {gid:>5} {size:>12} {time} {name}{target}\n"))
}

/// Type and permissions.
pub(crate) fn mode_text(mode: u16) -> String {
    let mut text = match kind(mode) {
        S_IFREG => "-",
        S_IFDIR => "d",
        S_IFCHR => "c",
        S_IFBLK => "b",
        S_IFIFO => "p",
        S_IFSOCK => "s",
        S_IFLNK => "l",
        _ => "?",
    }
    .to_string();
    for (shift, special, mark) in [(6, S_ISUID, 's'), (3, S_ISGID, 's'), (0, S_ISVTX, 't')] {
        let bits = mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (mode & special != 0, bits & 1 != 0) {
            (true, true) => mark,
            (true, false) => mark.to_ascii_uppercase(),
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    text
}

/// Date and time in UTC; the civil calendar from days, after Howard Hinnant's `civil_from_days`.
fn date(time: Timestamp) -> String {
    let (days, second) = (time.seconds.div_euclid(86_400), time.seconds.rem_euclid(86_400));
    let shifted = i128::from(days) + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i128::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}
