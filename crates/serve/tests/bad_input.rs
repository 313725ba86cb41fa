//! Clients that break off, talk nonsense, or are many. The others do not notice.

use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread;

use dovetail_time::Rng;

use crate::Rig;
use crate::client::{
    Client, FLUSH, READ, TRIM, WRITE, WRITE_ZEROES, go, option_bytes, request_bytes,
};

/// The bytes of a whole session: options, a write, a read, goodbye.
fn session() -> Vec<u8> {
    let mut bytes = 3_u32.to_be_bytes().to_vec();
    bytes.extend(option_bytes(8, &[]));
    bytes.extend(option_bytes(7, &go("")));
    bytes.extend(request_bytes(WRITE, 0, 1, 4096, 512));
    bytes.extend([5; 512]);
    bytes.extend(request_bytes(READ, 0, 2, 4096, 512));
    bytes.extend(request_bytes(2, 0, 3, 0, 0));
    bytes
}

fn raw(rig: &Rig) -> UnixStream {
    UnixStream::connect(rig.folder.path().join("socket")).unwrap()
}

/// Sends bytes, whatever becomes of them, and waits until the server has closed the connection.
fn send_and_leave(mut stream: UnixStream, bytes: &[u8]) {
    // the server may have closed it in the middle
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let _ = std::io::copy(&mut stream, &mut std::io::sink());
}

/// A well-behaved client is served, and the drive is as it was.
fn check(rig: &Rig) {
    let mut client = rig.client();
    assert_eq!(client.read(0, 4096), Ok(vec![0xD0; 4096]));
    client.write(1 << 20, &[1; 512]).unwrap();
    assert_eq!(client.read(1 << 20, 512), Ok(vec![1; 512]));
}

fn rig() -> Rig {
    let rig = Rig::at_once();
    rig.client().write(0, &[0xD0; 4096]).unwrap();
    rig
}

#[test]
fn a_client_may_break_off_anywhere() {
    let rig = rig();
    let whole = session();
    for end in 0..whole.len() {
        send_and_leave(raw(&rig), &whole[..end]);
        // and without waiting for anything
        let _ = raw(&rig).write_all(&whole[..end]);
    }
    check(&rig);
}

#[test]
fn nonsense_ends_its_own_connection_alone() {
    let rig = rig();
    let mut random = Rng::new(7);
    let whole = session();
    let before = 4 + option_bytes(8, &[]).len() + option_bytes(7, &go("")).len();
    for _ in 0..1000 {
        let mut bytes = match random.below(3) {
            0 => Vec::new(),
            1 => whole[..4].to_vec(),
            _ => whole[..before].to_vec(),
        };
        bytes.extend((0..random.below(300)).map(|_| random.next_u64() as u8));
        send_and_leave(raw(&rig), &bytes);
    }
    check(&rig);
}

#[test]
fn one_wrong_byte_harms_nobody() {
    let rig = rig();
    let mut random = Rng::new(9);
    let whole = session();
    for _ in 0..1500 {
        let mut bytes = whole.clone();
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << random.below(8);
        // but not to a change of the block that the test looks at
        let write = whole.len() - 28 - 28 - 512 - 28;
        if (write + 16..write + 28).contains(&at) {
            continue;
        }
        send_and_leave(raw(&rig), &bytes);
    }
    check(&rig);
}

#[test]
fn an_endless_handshake_is_ended() {
    let rig = rig();
    let mut client = rig.connect();
    client.send(&[b"IHAVEOPT", &[0, 0, 0, 7][..], &[255; 4]].concat());
    assert!(client.is_closed(), "an option of 4 GiB");
    let mut stream = raw(&rig);
    let mut flood = 3_u32.to_be_bytes().to_vec();
    flood.extend(option_bytes(99, &[]).repeat(1001));
    let reader = stream.try_clone().unwrap();
    let reading = thread::spawn(move || std::io::copy(&mut &reader, &mut std::io::sink()).is_ok());
    let _ = stream.write_all(&flood);
    reading.join().unwrap();
    check(&rig);
}

#[test]
fn requests_of_the_wrong_size_change_nothing() {
    let rig = rig();
    let mut client = rig.client();
    for command in [READ, TRIM, WRITE_ZEROES] {
        client.request(command, 0, 4096, u32::MAX, &[]);
        assert!(client.reply(0).result.is_err());
    }
    client.request(FLUSH, 0, u64::MAX, u32::MAX, &[]);
    assert!(client.reply(0).result.is_ok(), "a flush has no range");
    // a write of 4 GiB that never comes
    client.request(WRITE, 0, 0, u32::MAX, &[9; 100_000]);
    assert!(client.reply(0).result.is_err());
    drop(client);
    check(&rig);
}

#[test]
fn of_overlapping_writes_each_block_is_of_one() {
    let rig = rig();
    let begin = 1 << 20;
    thread::scope(|scope| {
        for fill in 1..=8 {
            let rig = &rig;
            scope.spawn(move || {
                let mut client = rig.client();
                for round in 0..50_u64 {
                    let offset = begin + (u64::from(fill) + round) % 4 * 4096;
                    client.write(offset, &[fill; 16384]).unwrap();
                }
            });
        }
    });
    let bytes = rig.client().read(begin, 7 * 4096).unwrap();
    for block in bytes.chunks(4096) {
        assert!((1..=8).contains(&block[0]) && block.iter().all(|byte| *byte == block[0]));
    }
    check(&rig);
}

#[test]
fn a_hundred_connections_at_once() {
    let rig = rig();
    thread::scope(|scope| {
        for n in 0..100_u64 {
            let rig = &rig;
            scope.spawn(move || {
                let mut client = rig.client();
                let offset = (2 << 20) + n * 12345;
                let data = vec![n as u8 + 1; 12345];
                for _ in 0..5 {
                    client.write(offset, &data).unwrap();
                    assert_eq!(client.read(offset, 12345).as_ref(), Ok(&data));
                }
            });
        }
    });
    check(&rig);
}

#[test]
fn connections_beyond_the_most_are_closed() {
    let rig = rig();
    let held: Vec<Client> = (0..256).map(|_| rig.connect()).collect();
    let mut more = raw(&rig);
    let mut rest = Vec::new();
    assert_eq!(std::io::Read::read_to_end(&mut more, &mut rest).unwrap(), 0);
    drop(held);
    while rig.server.status().unwrap().server.connections > 0 {}
    check(&rig);
}

#[test]
fn one_who_never_reads_his_answers_stops_nobody() {
    for speed in [0.0, 1.0] {
        let rig = Rig::new(speed, false);
        rig.client().write(0, &[0xD0; 4096]).unwrap();
        let mut client = rig.client();
        client.stream.set_nonblocking(true).unwrap();
        let request = request_bytes(READ, 0, 1, 0, 1 << 20);
        while client.stream.write_all(&request).is_ok() {}
        check(&rig);
        rig.server.end().unwrap();
    }
}
