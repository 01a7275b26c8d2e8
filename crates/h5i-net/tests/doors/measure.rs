//! What the relay costs, beside the same bytes without it. `doors measure`, built with `--release`.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use h5i_net::{Budgets, requests};
use h5i_policy::NetMode;

use crate::namespaces;
use crate::server;
use crate::world::{PUBLIC, World, connect, policy};

const BYTES: usize = 1 << 30;
const ROUNDS: usize = 3;
const FETCHES: usize = 2000;
const SHORT: usize = 10_000;

/// Reads and forgets; says one byte at the end.
fn sink(listener: TcpListener) {
    server::each(listener, |mut stream| {
        let mut buffer = vec![0; 1 << 18];
        while let Ok(1..) = stream.read(&mut buffer) {}
        stream.write_all(b"x").ok();
    });
}

fn send(mut stream: TcpStream) -> Duration {
    let chunk = vec![7; 1 << 18];
    let began = Instant::now();
    for _ in 0..BYTES / chunk.len() {
        stream.write_all(&chunk).unwrap();
    }
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    stream.read_exact(&mut [0]).unwrap();
    began.elapsed()
}

fn fetch(open: &dyn Fn() -> TcpStream) -> Duration {
    let began = Instant::now();
    let mut stream = open();
    stream.write_all(b"x").unwrap();
    stream.read_exact(&mut [0]).unwrap();
    began.elapsed()
}

fn median(mut all: Vec<Duration>) -> Duration {
    all.sort_unstable();
    all[all.len() / 2]
}

pub(crate) fn run() {
    let world = World::new(NetMode::Allow, &["93.184.216.34:7", "93.184.216.34:8"]);
    let (bulk, small) = (format!("{PUBLIC}:7"), format!("{PUBLIC}:8"));
    sink(world.listen(&bulk));
    server::echoes(world.listen(&small));
    let (bulk, small): (SocketAddr, SocketAddr) = (bulk.parse().unwrap(), small.parse().unwrap());
    let loopback = TcpListener::bind("127.0.0.1:0").unwrap();
    let near: SocketAddr = loopback.local_addr().unwrap();
    sink(loopback);
    let loopback = TcpListener::bind("127.0.0.1:0").unwrap();
    let near_small = loopback.local_addr().unwrap();
    server::echoes(loopback);
    let relayed = |to| world.inside(|| connect(to).unwrap());
    let direct = |to| connect(to).unwrap();
    for (name, open, to, little) in [
        ("loopback", &direct as &dyn Fn(SocketAddr) -> TcpStream, near, near_small),
        ("cable", &direct, bulk, small),
        ("relay", &relayed, bulk, small),
    ] {
        let bulk = median((0..ROUNDS).map(|_| send(open(to))).collect());
        let rate = BYTES as f64 / bulk.as_secs_f64() / 1e9;
        let fetches: Vec<_> = (0..FETCHES).map(|_| fetch(&|| open(little))).collect();
        let best = fetches.iter().min().copied().unwrap_or_default();
        let first = median(fetches);
        println!("{name:<9} {rate:.2} GB/s, first byte {first:?}, at best {best:?}");
    }
    let began = Instant::now();
    world.inside(|| {
        for _ in 0..SHORT {
            fetch(&|| connect(small).unwrap());
        }
    });
    let each = began.elapsed() / SHORT as u32;
    println!("relay     {SHORT} short connections in {:?}, {each:?} each", began.elapsed());
    start();
    memory(&world, small);
}

/// Starts with 50 listed addresses, the sockets being there.
fn start() {
    let rules: Vec<String> = (1..=50).map(|n| format!("93.184.216.{n}:443")).collect();
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let policy = policy(NetMode::Allow, &rules);
    let mut took = Vec::new();
    for _ in 0..20 {
        let mut world = World::bare();
        let sockets = world.sockets(&requests(&policy).unwrap());
        let began = Instant::now();
        world.network = Some(world.start(sockets, &policy, Budgets::default()));
        took.push(began.elapsed());
        // Each in namespaces of its own, from the thread's first ones.
        namespaces::new();
    }
    let best = took.iter().min().copied().unwrap_or_default();
    println!("start     with 50 addresses {:?}, at best {best:?}", median(took));
}

/// What a thousand flows take, of which each holds as much as it can.
fn memory(world: &World, to: SocketAddr) {
    let resident = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default().to_owned()
    };
    let before = resident();
    let streams: Vec<TcpStream> = world.inside(|| {
        (0..1000)
            .map(|_| {
                let stream = connect(to).unwrap();
                stream.set_nonblocking(true).unwrap();
                while (&stream).write(&[0; 1 << 16]).is_ok() {}
                stream
            })
            .collect()
    });
    println!("memory    {before} before, {} with 1000 full flows", resident());
    thread::yield_now();
    drop(streams);
}
