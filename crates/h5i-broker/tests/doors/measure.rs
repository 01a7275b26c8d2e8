//! What the broker costs, beside the same requests without it. `doors measure`, built with
//! `--release`.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use h5i_broker::Way;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use crate::client::Connection;
use crate::world::{HOST, Key, WAYS, World};

const FETCHES: usize = 3000;
const AT_ONCE: usize = 32;
const EACH: usize = 1000;

fn median(mut all: Vec<Duration>) -> Duration {
    all.sort_unstable();
    all[all.len() / 2]
}

/// A connection to the service itself, with what the broker would add.
fn direct(world: &World) -> Connection {
    let mut roots = RootCertStore::empty();
    roots.add(world.server.root.clone().into()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let stream = TcpStream::connect(world.server.address).unwrap();
    stream.set_nodelay(true).unwrap();
    let name = ServerName::try_from(HOST).unwrap();
    Connection::over(ClientConnection::new(Arc::new(config), name).unwrap(), stream)
}

fn fetches(connection: &mut Connection, text: &str, count: usize) -> Vec<Duration> {
    (0..count)
        .map(|_| {
            let began = Instant::now();
            connection.send(text);
            assert_eq!(connection.answer().unwrap().text(), "ok");
            began.elapsed()
        })
        .collect()
}

pub(crate) fn run() {
    let world = World::new();
    let direct_text = format!("GET /ok HTTP/1.1\r\nhost: {}\r\n\r\n", world.host(Way::Intercept))
        .to_lowercase()
        .replace("get /ok http/1.1", "GET /ok HTTP/1.1");
    let mut connection = direct(&world);
    fetches(&mut connection, &direct_text, 100);
    let alone = median(fetches(&mut connection, &direct_text, FETCHES));
    println!("direct     {alone:?} a request, one after the other on one connection");
    for way in WAYS {
        let text = world.text(way, "GET /ok", "");
        let mut connection = world.connect(way);
        fetches(&mut connection, &text, 100);
        let each = median(fetches(&mut connection, &text, FETCHES));
        println!("{way:<10?} {each:?} a request, {:?} more", each.saturating_sub(alone));
        let first: Vec<_> = (0..200)
            .map(|_| {
                let began = Instant::now();
                let mut connection = world.connect(way);
                fetches(&mut connection, &text, 1);
                began.elapsed()
            })
            .collect();
        println!("{way:<10?} {:?} with a connection of its own", median(first));
    }
    for way in WAYS {
        let text = world.text(way, "GET /ok", "");
        let began = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..AT_ONCE {
                scope.spawn(|| fetches(&mut world.connect(way), &text, EACH));
            }
        });
        let rate = (AT_ONCE * EACH) as f64 / began.elapsed().as_secs_f64();
        println!(
            "{way:<10?} {rate:.0} requests a second, {AT_ONCE} at once, with both ends on this machine"
        );
    }
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| fetches(&mut direct(&world), &direct_text, EACH));
        }
    });
    let rate = (AT_ONCE * EACH) as f64 / began.elapsed().as_secs_f64();
    println!("direct     {rate:.0} requests a second, {AT_ONCE} at once");
    let bare = World::with(|make| make.key = Key::None);
    for (world, name) in [(&world, "scrubbed"), (&bare, "without a secret")] {
        for way in WAYS {
            let mut connection = world.connect(way);
            let began = Instant::now();
            connection.send(world.text(way, "GET /down?1000000000", ""));
            connection.head().unwrap();
            assert_eq!(connection.count(1_000_000_000), 1_000_000_000);
            let rate = 1e9 / began.elapsed().as_secs_f64() / 1e6;
            println!("{way:<10?} {rate:.0} MB/s from the service, {name}");
        }
    }
}
