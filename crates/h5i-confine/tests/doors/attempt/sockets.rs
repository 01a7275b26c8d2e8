//! Attempts on sockets and other ways between processes.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use super::{Attempt, number};
use crate::call::{A, Outcome, call, of};

pub(crate) const ALL: &[(&str, Attempt)] = &[
    ("socket", |a| {
        let args: Vec<i64> = a.iter().map(|n| number(n)).collect();
        done(call(libc::SYS_socket, &mut [A::N(args[0]), A::N(args[1]), A::N(args[2])]))
    }),
    ("unix-connect", |a| UnixStream::connect(a[0]).map(|_| String::new()).map_err(|e| of(&e))),
    ("abstract-connect", |a| {
        let address = SocketAddr::from_abstract_name(a[0]).map_err(|e| of(&e))?;
        UnixStream::connect_addr(&address).map(|_| String::new()).map_err(|e| of(&e))
    }),
    ("abstract-own", |a| {
        let address = SocketAddr::from_abstract_name(a[0]).map_err(|e| of(&e))?;
        let listener = UnixListener::bind_addr(&address).map_err(|e| of(&e))?;
        UnixStream::connect_addr(&address).map_err(|e| of(&e))?;
        drop(listener);
        Ok(String::new())
    }),
    ("unix-own", |a| {
        let path = format!("{}/own-{}.sock", a[0], std::process::id());
        let listener = UnixListener::bind(&path).map_err(|e| of(&e))?;
        UnixStream::connect(&path).map_err(|e| of(&e))?;
        drop(listener);
        std::fs::remove_file(&path).map_err(|e| of(&e))?;
        Ok(String::new())
    }),
    ("tcp-connect", |a| TcpStream::connect(a[0]).map(|_| String::new()).map_err(|e| of(&e))),
    ("tcp-own", |a| tcp_own(a[0]).map_err(|e| of(&e))),
    ("tcp-serve", |a| {
        let listener = TcpListener::bind(a[0]).map_err(|e| of(&e))?;
        println!("ready");
        listener.accept().map(|_| String::new()).map_err(|e| of(&e))
    }),
    ("netlink-links", |_| netlink_links()),
    ("shm-get", |a| done(call(libc::SYS_shmget, &mut [A::N(number(a[0])), A::N(0), A::N(0)]))),
    ("shm-own", |_| done(call(libc::SYS_shmget, &mut [A::N(77), A::N(4096), A::N(0o1600)]))),
    ("mq-own", |a| {
        let flags = i64::from(libc::O_CREAT | libc::O_RDWR);
        let args = &mut [A::S(a[0]), A::N(flags), A::N(0o600), A::N(0)];
        let result = call(libc::SYS_mq_open, args);
        call(libc::SYS_mq_unlink, &mut [A::S(a[0])]).ok();
        done(result)
    }),
];

fn done(result: Result<i64, i32>) -> Outcome {
    result.map(|_| String::new())
}

fn tcp_own(address: &str) -> std::io::Result<String> {
    let listener = TcpListener::bind(address)?;
    let mut client = TcpStream::connect(listener.local_addr()?)?;
    let (mut server, _) = listener.accept()?;
    server.write_all(b"hello")?;
    drop(server);
    let mut text = String::new();
    client.read_to_string(&mut text)?;
    Ok(text)
}

/// Asks the kernel for the links of the network namespace: RTM_GETLINK (18), a dump.
fn netlink_links() -> Outcome {
    let kind = i64::from(libc::SOCK_RAW);
    let fd = call(libc::SYS_socket, &mut [A::N(16), A::N(kind), A::N(0)])?;
    let mut request = [0u8; 32];
    request[0] = 32;
    request[4] = 18;
    request[6..8].copy_from_slice(&0x301u16.to_ne_bytes());
    call(libc::SYS_sendto, &mut [A::N(fd), A::In(&request), A::N(32), A::N(0), A::N(0), A::N(0)])?;
    let mut answer = [0u8; 8192];
    let args = &mut [A::N(fd), A::Out(&mut answer), A::N(8192), A::N(0), A::N(0), A::N(0)];
    call(libc::SYS_recvfrom, args)?;
    // RTM_NEWLINK is 16; an error message is 2.
    Ok(u16::from_ne_bytes([answer[4], answer[5]]).to_string())
}
