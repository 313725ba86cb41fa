//! Answers to a well-behaved client.

use dovetail_serve::{Address, ListenError, Pace, Server, ask_status};

use crate::client::{
    BLOCK_STATUS, Client, FLUSH, FUA, NO_HOLE, READ, REQ_ONE, TRIM, WRITE, WRITE_ZEROES, contexts,
    go, u32_at,
};
use crate::{Rig, drive};

const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;
const EPERM: u32 = 1;
const UNSUP: u32 = 1 << 31 | 1;
const INVALID: u32 = 1 << 31 | 3;
const UNKNOWN: u32 = 1 << 31 | 6;

#[test]
fn what_was_written_is_read_with_either_kind_of_reply() {
    let rig = Rig::at_once();
    for structured in [false, true] {
        let mut client = rig.connect();
        client.begin(structured);
        assert_eq!(client.size, 128 << 20);
        // SEND_DF: only a structured reply can be asked not to be cut
        assert_eq!(client.flags & 1 << 7 != 0, structured);
        let data: Vec<u8> = (0..10_000).map(|i| (i % 251) as u8 + 1).collect();
        for offset in [0, 512, 4096 + 1, client.size - 10_000] {
            assert_eq!(client.write(offset, &data), Ok(vec![]));
            assert_eq!(client.read(offset, 10_000).as_ref(), Ok(&data), "at {offset}");
        }
        assert_eq!(client.call(FLUSH, 0, 0, 0, &[]), Ok(vec![]));
        assert_eq!(client.call(WRITE, FUA, 8192, 512, &[7; 512]), Ok(vec![]));
        assert_eq!(client.read(8192, 512), Ok(vec![7; 512]));
        assert_eq!(client.call(WRITE_ZEROES, NO_HOLE, 8192, 100, &[]), Ok(vec![]));
        assert_eq!(client.read(8192, 101).unwrap()[99..], [0, 7]);
        assert_eq!(client.call(TRIM, FUA, 4096, 8192, &[]), Ok(vec![]));
        assert_eq!(client.read(4096, 8192), Ok(vec![0; 8192]));
    }
}

#[test]
fn an_old_client_begins_by_name() {
    let rig = Rig::at_once();
    let mut client = rig.connect();
    client.send(&crate::client::option_bytes(1, b"femu-32g"));
    let export = client.take(10).unwrap();
    let size: u64 = 128 << 20;
    assert_eq!(export[..8], size.to_be_bytes());
    assert_eq!(client.read(0, 512), Ok(vec![0; 512]));
    let mut other = rig.connect();
    other.send(&crate::client::option_bytes(1, b"another"));
    assert!(other.is_closed());
}

#[test]
fn the_largest_request_is_32_mib() {
    let rig = Rig::at_once();
    let mut client = rig.client();
    let data: Vec<u8> = (0..32 << 20).map(|i: u32| (i / 4096) as u8 | 1).collect();
    assert_eq!(client.write(512, &data), Ok(vec![]));
    assert!(client.read(512, 32 << 20).unwrap() == data);
    let more = (32 << 20) + 1;
    assert_eq!(client.read(0, more), Err(EINVAL));
    let data = vec![9; more as usize];
    assert_eq!(client.write(0, &data), Err(EINVAL), "and its data is skipped");
    assert_eq!(client.read(512, 1), Ok(vec![1]), "nothing of it was written");
}

#[test]
fn options_are_answered_in_turn() {
    let rig = Rig::at_once();
    let mut client = rig.connect();
    let list = client.option(3, &[]);
    assert_eq!(list[0], (2, [&[0, 0, 0, 8][..], b"femu-32g"].concat()));
    assert_eq!(list[1].0, 1);
    for unknown in [4, 5, 11, 77, u32::MAX] {
        assert_eq!(client.option(unknown, b"data")[0].0, UNSUP);
    }
    assert_eq!(client.option(6, &go("another"))[0].0, UNKNOWN);
    assert_eq!(client.option(10, &contexts("", &["base:allocation"]))[0].0, INVALID, "too early");
    let listed = client.option(9, &contexts("", &[]));
    assert_eq!(listed[0], (4, b"\0\0\0\0base:allocation".to_vec()));
    assert_eq!(client.option(9, &contexts("femu-32g", &["base:"])), listed);
    assert_eq!(client.option(9, &contexts("", &["qemu:"])).len(), 1);
    assert_eq!(client.option(8, &[])[0].0, 1);
    assert_eq!(client.option(10, &contexts("another", &["base:allocation"]))[0].0, UNKNOWN);
    assert_eq!(client.option(10, &contexts("", &["x", "base:allocation"])).len(), 2);
    for malformed in [&b""[..], &[0, 0, 0, 9], &[0, 0, 0, 0, 0], &[0, 0, 0, 0, 0, 3, 0, 1]] {
        assert_eq!(client.option(6, malformed)[0].0, INVALID);
        assert_eq!(client.option(10, malformed)[0].0, INVALID);
    }
    let wishes = [&[0, 0, 0, 0, 0, 2, 0, 1, 0, 2][..]].concat();
    let told = client.option(6, &wishes);
    assert_eq!(told[2].1, b"\0\x01femu-32g");
    assert_eq!(told[3].1, b"\0\x02a simulated flash drive");
    let sizes = &told[1].1;
    assert_eq!([2, 6, 10].map(|at| u32_at(sizes, at)), [512, 4096, 32 << 20]);
    assert_eq!(client.option(2, &[]), [(1, vec![])], "goodbye");
    assert!(client.is_closed());
}

#[test]
fn a_block_status_tells_holes() {
    let rig = Rig::at_once();
    let mut client = rig.client();
    client.write(8192, &[1; 8192]).unwrap();
    let extents = |status: &[u8]| {
        let (id, extents) = status.split_at(4);
        assert_eq!(u32_at(id, 0), 1);
        extents.as_chunks::<8>().0.iter().map(|e| (u32_at(e, 0), u32_at(e, 4))).collect::<Vec<_>>()
    };
    let status = client.call(BLOCK_STATUS, 0, 4096, 1 << 20, &[]).unwrap();
    assert_eq!(extents(&status), [(4096, 3), (8192, 0), ((1 << 20) - 12288, 3)]);
    let first = client.call(BLOCK_STATUS, REQ_ONE, 8192, 1 << 20, &[]).unwrap();
    assert_eq!(extents(&first), [(8192, 0)]);
    assert_eq!(client.call(BLOCK_STATUS, 0, 0, 0, &[]), Err(EINVAL));
    let mut plain = rig.connect();
    plain.begin(false);
    assert_eq!(plain.call(BLOCK_STATUS, 0, 0, 4096, &[]), Err(EINVAL), "not agreed on");
}

#[test]
fn what_cannot_be_is_an_error_and_the_connection_goes_on() {
    let rig = Rig::at_once();
    let mut client = rig.client();
    let end = client.size;
    for (offset, len) in [(end, 1), (end - 1, 2), (u64::MAX, 1), (u64::MAX - 4095, 4096)] {
        assert_eq!(client.read(offset, len), Err(EINVAL));
        let data = vec![1; len as usize];
        assert_eq!(client.write(offset, &data), Err(ENOSPC));
        assert_eq!(client.call(TRIM, 0, offset, len, &[]), Err(EINVAL));
        assert_eq!(client.call(WRITE_ZEROES, 0, offset, len, &[]), Err(ENOSPC));
        assert_eq!(client.call(BLOCK_STATUS, 0, offset, len, &[]), Err(EINVAL));
    }
    for command in [5, 8, 77, u16::MAX] {
        assert_eq!(client.call(command, 0, 0, 512, &[]), Err(EINVAL));
    }
    assert_eq!(client.call(READ, 1 << 9, 0, 512, &[]), Err(EINVAL), "an unknown flag");
    assert_eq!(client.call(WRITE, NO_HOLE, 0, 512, &[1; 512]), Err(EINVAL), "of another command");
    assert_eq!(client.read(end - 512, 512), Ok(vec![0; 512]));
    assert!(rig.server.status().unwrap().server.requests.failed > 10);
}

#[test]
fn a_drive_served_read_only_is_not_changed() {
    let rig = Rig::new(0.0, true);
    let mut client = rig.client();
    assert_eq!(client.flags & 2, 2);
    for (command, data) in [(WRITE, &[1; 512][..]), (TRIM, &[]), (WRITE_ZEROES, &[])] {
        assert_eq!(client.call(command, 0, 0, 512, data), Err(EPERM));
    }
    assert_eq!(client.read(0, 512), Ok(vec![0; 512]));
    assert_eq!(client.call(FLUSH, 0, 0, 0, &[]), Ok(vec![]));
}

#[test]
fn connections_see_each_others_writes() {
    let rig = Rig::at_once();
    let (mut one, mut other) = (rig.client(), rig.client());
    assert_eq!(one.flags & 256, 256, "multi-conn");
    one.write(4096, &[3; 4096]).unwrap();
    assert_eq!(other.read(4096, 4096), Ok(vec![3; 4096]));
    other.call(FLUSH, 0, 0, 0, &[]).unwrap();
    let status = rig.server.status().unwrap();
    assert_eq!((status.server.connections, status.server.connections_total), (2, 2));
    assert_eq!((status.since_power_on.flushes, status.since_power_on.written_bytes), (1, 4096));
}

#[test]
fn the_state_of_the_drive_is_told_to_those_who_ask() {
    let rig = Rig::at_once();
    let mut client = rig.client();
    client.write(0, &[3; 8192]).unwrap();
    let socket = Address::Unix(rig.folder.path().join("socket")).connect().unwrap();
    let status = ask_status(&socket).unwrap();
    assert_eq!(status.since_power_on.written_bytes, 8192);
    assert_eq!(status.since_power_on.write_amplification, Some(1.0));
    assert_eq!(status.server.requests.write, 1);
    assert_eq!(status.drive.name, "femu-32g");
}

#[test]
fn tcp_serves_as_a_unix_socket_does() {
    let mut server = Server::new(drive("femu-32g"), Pace::new(0.0), false);
    let bound = server.listen(&Address::tcp("0").unwrap(), false).unwrap();
    let status = ask_status(&bound.connect().unwrap()).unwrap();
    assert_eq!(status.server.connections, 1);
    server.end().unwrap();
    assert!(bound.connect().is_err());
}

#[test]
fn zones_are_not_served() {
    let mut server = Server::new(drive("femu-32g-zoned"), Pace::new(0.0), false);
    let refused = server.listen(&Address::tcp("0").unwrap(), false).unwrap_err();
    assert!(matches!(refused, ListenError::Zoned), "{refused}");
    let status = server.status().unwrap().drive;
    assert!(status.zoned && status.lines_free == status.lines, "{status:?}");
}

#[test]
fn the_end_lets_answers_leave_and_removes_the_socket() {
    let rig = Rig::new(0.01, false); // a write takes 50 ms
    let mut client = rig.client();
    let cookie = client.request(WRITE, 0, 0, 4096, &[1; 4096]);
    while rig.server.status().unwrap().server.requests.write == 0 {}
    let mut silent: Client = rig.connect();
    let path = rig.folder.path().join("socket");
    rig.server.end().unwrap();
    assert_eq!(client.reply(0).cookie, cookie);
    assert!(client.is_closed() && silent.is_closed() && !path.exists());
}

/// Somebody who says nothing is no server: the question ends.
#[test]
fn a_socket_at_which_nobody_speaks_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("silent");
    let _listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let socket = std::os::unix::net::UnixStream::connect(&path).unwrap();
    assert!(ask_status(&socket.into()).is_err());
}
