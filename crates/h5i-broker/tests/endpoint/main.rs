//! The way to a service that renews logins, against one on this host.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "tests"
)]

#[allow(dead_code, reason = "the doors use the rest")]
#[path = "../doors/server.rs"]
mod server;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use h5i_broker::{HostEndpoint, Resolve, Roots, Secret, TokenEndpoint};
use h5i_policy::HostName;
use server::{Server, Speaks};

/// Everything is on this host.
struct Here;

impl Resolve for Here {
    fn resolve(&self, _: &HostName) -> io::Result<Vec<IpAddr>> {
        Ok(vec![Server::ip()])
    }
}

const KIND: &str = "application/json";

fn body() -> Secret {
    Secret::new(b"{\"refresh_token\":\"sk-canary\"}".to_vec())
}

#[test]
fn it_posts_to_a_service_that_is_verified() {
    for speaks in [Speaks::Http1, Speaks::Http2] {
        let server = Server::new("id.example.com", speaks);
        let roots = Roots::These(vec![server.root.clone()]);
        let endpoint = HostEndpoint::with(roots, Arc::new(Here)).unwrap();
        let url = format!("https://id.example.com:{}/token", server.address.port());
        let (status, _) = endpoint.exchange(&url, KIND, body()).unwrap();
        assert_eq!(status, 200);
        let [seen] = &server.seen()[..] else { panic!("one request") };
        assert!(seen.head.starts_with("POST ") && seen.head.contains("/token"), "{}", seen.head);
        assert_eq!((seen.header("content-type"), seen.body), (vec![KIND], 29));
    }
}

#[test]
fn nothing_is_sent_to_whom_is_not_verified() {
    let (server, other) =
        (Server::new("id.example.com", Speaks::Http1), Server::new("x.example", Speaks::Http1));
    let port = server.address.port();
    let at = |root: &Server, url: String| {
        let roots = Roots::These(vec![root.root.clone()]);
        let endpoint = HostEndpoint::with(roots, Arc::new(Here)).unwrap();
        let error = endpoint.exchange(&url, KIND, body()).unwrap_err();
        assert!(!format!("{error:?}").contains("canary"));
    };
    at(&other, format!("https://id.example.com:{port}/token"));
    at(&server, format!("https://other.example.com:{port}/token"));
    at(&server, format!("http://id.example.com:{port}/token"));
    at(&server, "https://id.example.com:1/token".to_owned());
    assert!(server.seen().is_empty());
}
