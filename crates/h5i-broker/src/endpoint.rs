//! The way to the services that renew logins: the host's own network and trust.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h5i_policy::HostName;
use http::{Request, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;

use crate::login::{EndpointError, TokenEndpoint};
use crate::resolve::{HostResolver, Resolve};
use crate::secret::Secret;
use crate::setup::Roots;
use crate::upstream::{Connector, Trust};

/// How long all of it may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest answer, in bytes.
const LONGEST: usize = 64 * 1024;

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Posts to `https` addresses from the host. It keeps no connection: a login is renewed once in
/// hours.
#[derive(Clone)]
pub struct HostEndpoint {
    trust: Arc<Trust>,
    resolver: Arc<dyn Resolve>,
}

impl HostEndpoint {
    /// By the host's roots and resolver.
    ///
    /// # Errors
    /// As [`HostEndpoint::with`].
    pub fn new() -> Result<Self, rustls::Error> {
        Self::with(Roots::Host, Arc::new(HostResolver))
    }

    /// By other roots and another resolver.
    ///
    /// # Errors
    /// A root that is no certificate.
    pub fn with(roots: Roots, resolver: Arc<dyn Resolve>) -> Result<Self, rustls::Error> {
        Ok(Self { trust: Arc::new(Trust::new(roots)?), resolver })
    }

    async fn post(
        &self,
        url: &str,
        content_type: &str,
        body: Secret,
    ) -> Result<(u16, Secret), Failed> {
        let uri: Uri = url.parse()?;
        if uri.scheme_str() != Some("https") {
            return Err("it is no https address".into());
        }
        let connector = Connector {
            host: HostName::new(uri.host().unwrap_or_default())?,
            port: uri.port_u16().unwrap_or(443),
            resolver: Arc::clone(&self.resolver),
            trust: Arc::clone(&self.trust),
            patience: PATIENCE,
        };
        let request = Request::post(uri)
            .header(header::CONTENT_TYPE, content_type)
            .header(header::ACCEPT, "application/json")
            .body(Full::new(Bytes::copy_from_slice(body.expose())))?;
        let client = Client::builder(TokioExecutor::new()).build(connector);
        let (head, answer) = client.request(request).await?.into_parts();
        let answer = Limited::new(answer, LONGEST).collect().await?;
        Ok((head.status.as_u16(), Secret::new(answer.to_bytes().to_vec())))
    }
}

impl std::fmt::Debug for HostEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostEndpoint").finish_non_exhaustive()
    }
}

impl TokenEndpoint for HostEndpoint {
    fn exchange(
        &self,
        url: &str,
        content_type: &str,
        body: Secret,
    ) -> Result<(u16, Secret), EndpointError> {
        let failed = |error: Failed| EndpointError(error);
        // Credentials are asked for on a thread that may block.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed(error.into()))?;
        runtime
            .block_on(async {
                tokio::time::timeout(PATIENCE, self.post(url, content_type, body)).await
            })
            .unwrap_or_else(|late| Err(late.into()))
            .map_err(failed)
    }
}
