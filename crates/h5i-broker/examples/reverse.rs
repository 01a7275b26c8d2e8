//! Serves one service to whoever has the token: `reverse HOST PATTERN FILE`.
//!
//! The secret is the first line of FILE. Prints the variables that a program would be started with,
//! then what is observed, until its input ends.
#![allow(clippy::print_stdout, reason = "its output is what it is for")]
#![allow(clippy::disallowed_methods, reason = "a program that is run by hand")]

use std::error::Error;
use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use h5i_broker::{
    Broker, Credential, CredentialError, Credentials, Event, EventSink, Issue, Secret, Service,
    Setup, SinkClosed,
};
use h5i_policy::{Allowed, Grant, HostName, Pattern};
use rustix::net::{AddressFamily, SocketType};

/// Prints each observation.
struct Printed;

impl EventSink for Printed {
    fn event(&self, event: Event) -> Result<(), SinkClosed> {
        println!("{event:?}");
        Ok(())
    }
}

/// The first line of a file, as a bearer token. Read again whenever it is asked for.
struct FirstLine(PathBuf);

impl Credentials for FirstLine {
    fn current(&self) -> Result<Arc<Credential>, CredentialError> {
        let text = fs::read_to_string(&self.0).map_err(|error| CredentialError::Source {
            source_name: self.0.display().to_string(),
            why: error.to_string(),
        })?;
        let secret = text.lines().next().unwrap_or_default();
        Ok(Arc::new(Credential {
            headers: vec![(
                "authorization".to_owned(),
                Secret::new(format!("Bearer {secret}").into_bytes()),
            )],
            query: None,
            append: Vec::new(),
            secrets: vec![Secret::new(secret.as_bytes().to_vec())],
            until: None,
        }))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [host, pattern, file] = args.as_slice() else { return Err("HOST PATTERN FILE".into()) };
    let mut grant = Grant::to(HostName::new(host)?);
    grant.paths = Allowed::Only([Pattern::new(pattern)?].into());
    grant.variables.base_url.insert("BASE_URL".to_owned());
    grant.variables.token.insert("TOKEN".to_owned());

    // In a box this one is made in its network namespace.
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
    let service = Service::reverse("example", grant, socket).with(Arc::new(FirstLine(file.into())));
    let broker = Broker::start(Setup::new(vec![service]), Arc::new(Printed))?;
    for (name, value) in broker.issue(&Issue::to(1))? {
        println!("{name}={value}");
    }
    std::io::stdin().read_to_end(&mut Vec::new())?;
    drop(broker);
    Ok(())
}
