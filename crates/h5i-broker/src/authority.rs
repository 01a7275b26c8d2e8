//! The certificate authority of one box, which nobody else trusts.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use h5i_policy::HostName;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, KeyPair, KeyUsagePurpose, NameConstraints,
    PKCS_ECDSA_P256_SHA256,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::upstream::provider;

/// From when certificates hold, before they are made: the box's clock is the host's, but for what a
/// program makes of it.
const EARLIER: Duration = Duration::from_secs(24 * 3600);
/// How long they hold. A box's session is shorter.
const LASTS: Duration = Duration::from_secs(90 * 24 * 3600);

/// The authority. Its key is made here and never leaves this value; its certificates are for the
/// hosts of the grants, and what names another host is none of its (name constraints, RFC 5280,
/// section 4.2.1.10).
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    leaves: Mutex<Vec<(HostName, Arc<ServerConfig>)>>,
}

impl Authority {
    pub(crate) fn new<'a>(hosts: impl Iterator<Item = &'a HostName>) -> Result<Self, rcgen::Error> {
        let mut params = params(Vec::new())?;
        let mut name = DistinguishedName::new();
        name.push(DnType::CommonName, "h5i, for this box only");
        params.distinguished_name = name;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let permitted = hosts.map(|host| GeneralSubtree::DnsName(host.as_str().to_owned()));
        params.name_constraints = Some(NameConstraints {
            permitted_subtrees: permitted.collect(),
            excluded_subtrees: Vec::new(),
        });
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let issuer = CertifiedIssuer::self_signed(params, key)?;
        Ok(Self { issuer, leaves: Mutex::default() })
    }

    /// Its certificate, for the box's trust files.
    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// How to be `host` towards the box. Made once a host.
    pub(crate) fn leaf(&self, host: &HostName) -> Option<Arc<ServerConfig>> {
        let mut leaves = self.leaves.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, config)) = leaves.iter().find(|(name, _)| name == host) {
            return Some(Arc::clone(config));
        }
        let config = Arc::new(self.make(host).ok()?);
        leaves.push((host.clone(), Arc::clone(&config)));
        Some(config)
    }

    fn make(&self, host: &HostName) -> Result<ServerConfig, LeafError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = params(vec![host.as_str().to_owned()])?;
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, host.as_str());
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &self.issuer)?;
        let chain: Vec<CertificateDer<'static>> =
            vec![certificate.der().clone(), self.issuer.der().clone()];
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

/// Why there is no certificate for a host.
#[derive(Debug, thiserror::Error)]
enum LeafError {
    #[error("could not make a certificate")]
    Certificate(#[from] rcgen::Error),
    #[error("could not use a certificate")]
    Use(#[from] rustls::Error),
}

fn params(names: Vec<String>) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    params.not_before = epoch + now.saturating_sub(EARLIER);
    params.not_after = epoch + now + LASTS;
    Ok(params)
}

#[cfg(test)]
mod tests {
    use super::Authority;
    use h5i_policy::HostName;

    #[test]
    fn a_host_has_one_leaf_and_the_key_is_in_no_text() {
        let host = HostName::new("api.example.com").expect("name");
        let authority = Authority::new([&host].into_iter()).expect("authority");
        let (one, other) = (authority.leaf(&host), authority.leaf(&host));
        assert!(std::sync::Arc::ptr_eq(&one.expect("leaf"), &other.expect("leaf")));
        assert!(authority.pem().contains("BEGIN CERTIFICATE"));
        assert!(!authority.pem().contains("PRIVATE"));
    }
}
