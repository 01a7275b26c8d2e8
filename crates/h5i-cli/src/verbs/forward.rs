//! `h5i box forward`

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;

use h5i_policy::NetMode;
use serde_json::{Value, json};

use super::run::frozen_policy;
use super::{Answer, find};
use crate::args::ForwardArgs;
use crate::caller::Caller;
use crate::envelope::Envelope;
use crate::failure::{Failure, Kind};
use crate::forward::serve;
use crate::session::Forwarded;

pub(super) fn forward(caller: &Caller, args: &ForwardArgs) -> Result<Answer, Failure> {
    let stored = find(caller, &args.name)?;
    let policy = frozen_policy(&stored, &stored.manifest()?)?;
    if policy.net.mode == NetMode::Host {
        let message = format!("box `{}` uses the host's own network", args.name);
        return Err(Failure::told(Kind::Refused, message)
            .hint(format!("127.0.0.1:{} is the box's already", args.port)));
    }
    let wanted = args.host_port.unwrap_or(args.port);
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, wanted)).map_err(|e| taken(wanted, &e))?;
    let at = listener.local_addr().map_err(|e| taken(wanted, &e))?.to_string();
    let forwarded = Arc::new(Forwarded::begin(&stored, args.port, &at)?);
    if args.output.json {
        let data = json!({ "box": args.name, "port": args.port, "at": at });
        let mut line = Vec::new();
        let written = Envelope::success(&data).write_to(&mut line);
        written.map_err(|e| Failure::told(Kind::Internal, e.to_string()))?;
        super::print_line(String::from_utf8_lossy(&line).trim_end())?;
    } else {
        super::print_line(&at)?;
        super::say(&format!("port {} of box `{}` is at {at} (^C ends it)", args.port, args.name));
    }
    serve(&listener, &forwarded, refused).map_err(|e| {
        Failure::told(Kind::Io, format!("cannot go on forwarding: {e}"))
            .hint("forward it again; see that descriptors are left (ulimit -n)")
    })?;
    // The answer was given when it began.
    Ok(Answer::new(Value::Null, String::new())?.note("the session has ended"))
}

fn refused(error: &io::Error) {
    super::say(&format!("no connection inside the box: {error}"));
}

fn taken(port: u16, error: &io::Error) -> Failure {
    let kind = match error.kind() {
        io::ErrorKind::AddrInUse => Kind::Busy,
        io::ErrorKind::PermissionDenied => Kind::Refused,
        _ => Kind::Io,
    };
    Failure::told(kind, format!("cannot listen on 127.0.0.1:{port}: {error}"))
        .hint("--as PORT for another one; 0 for any")
}
