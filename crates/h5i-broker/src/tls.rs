//! The TLS of an intercepted connection: its program speaks to the service's name, and to nobody
//! else's.

use std::sync::Arc;

use rustls::server::Acceptor;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;
use tokio_rustls::LazyConfigAcceptor;

use crate::engine::{Engine, Origin};
use crate::event::Denial;
use crate::exchange::refuse;
use crate::refusal::Refusal;
use crate::wire::Wire;
use crate::{h1, h2};

/// A fatal alert, `unrecognized_name`. RFC 8446, section 6; RFC 6066, section 3.
const NOT_THIS_NAME: &[u8] = &[21, 3, 3, 0, 2, 2, 112];

pub(crate) async fn serve(engine: &Arc<Engine>, origin: &Arc<Origin>, wire: Wire) {
    let late = engine.patience.head;
    let mut acceptor = LazyConfigAcceptor::new(Acceptor::default(), wire.clone());
    let start = match timeout(late, &mut acceptor).await {
        Ok(Ok(start)) => start,
        Ok(Err(_)) => {
            let refusal = Refusal::because(Denial::Malformed, "it does not begin with TLS");
            refuse(engine, origin, refusal, None, None).await;
            return wire.break_off();
        }
        Err(_late) => {
            refuse(engine, origin, h1::Fault::TooSlow.into(), None, None).await;
            return wire.break_off();
        }
    };
    let host = &origin.served.grant.host;
    let named = start
        .client_hello()
        .server_name()
        .is_some_and(|name| name.eq_ignore_ascii_case(host.as_str()));
    let config = engine.authority.as_ref().and_then(|authority| authority.leaf(host));
    let (true, Some(config)) = (named, config) else {
        refuse(engine, origin, Denial::OtherHost.into(), None, None).await;
        let mut io = start.io;
        // A client that is gone needs no alert.
        io.write_all(NOT_THIS_NAME).await.ok();
        io.shutdown().await.ok();
        return;
    };
    // The program does not trust the box's authority, or is gone: its own affair, and its own
    // message.
    let Ok(Ok(stream)) = timeout(late, start.into_stream(config)).await else { return };
    let (_, tls) = stream.get_ref();
    if tls.alpn_protocol() == Some(b"h2") {
        h2::serve(engine, origin, stream).await;
    } else {
        h1::serve(engine, origin, tokio::io::split(stream), &wire).await;
    }
}
