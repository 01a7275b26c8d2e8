//! What stands in a planted credential.

use std::path::Path;

use h5i_policy::HomePath;
use serde_json::json;

use crate::path_error::PathError;
use crate::store::random_bytes;

/// A file that looks like a credential of its name, and holds nothing real.
#[derive(Debug)]
pub(super) struct Bait {
    pub(super) bytes: Vec<u8>,
    /// What of it is in no other file: random each time.
    pub(super) secrets: Vec<String>,
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const WORD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789Zz";
const KEY_ID: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const HEX: &[u8; 16] = b"0123456789abcdef";

/// What every unencrypted Ed25519 key of OpenSSH begins with.
const OPENSSH: &str = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW";

impl Bait {
    /// For a file of this name, with secrets of its own.
    ///
    /// # Errors
    /// [`PathError`] if the kernel's random source can't be read.
    pub(super) fn of(path: &HomePath) -> Result<Self, PathError> {
        let below = Path::new(path.below_home());
        let name = below.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let ends = |end: &str| name.to_ascii_lowercase().ends_with(end);
        match name.as_str() {
            _ if path.below_home() == ".aws/credentials" => aws(),
            ".netrc" | "_netrc" => netrc(),
            _ if name.starts_with("id_") && !ends(".pub") => key("OPENSSH ", OPENSSH),
            _ if ends(".pem") || ends(".key") => key("", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"),
            _ if ends(".json") => service_account(),
            _ => assignments(),
        }
    }

    fn new(text: String, secrets: impl IntoIterator<Item = String>) -> Self {
        Self { bytes: text.into_bytes(), secrets: secrets.into_iter().collect() }
    }
}

/// So many random letters of an alphabet, whose size is a power of two.
fn random(alphabet: &[u8], length: usize) -> Result<String, PathError> {
    let letter = |byte: u8| char::from(alphabet[usize::from(byte) & (alphabet.len() - 1)]);
    Ok(random_bytes(length)?.into_iter().map(letter).collect())
}

fn aws() -> Result<Bait, PathError> {
    let (id, secret) = (format!("AKIA{}", random(KEY_ID, 16)?), random(BASE64, 40)?);
    let text = format!("[default]\naws_access_key_id = {id}\naws_secret_access_key = {secret}\n");
    Ok(Bait::new(text, [id, secret]))
}

fn netrc() -> Result<Bait, PathError> {
    let password = random(WORD, 40)?;
    Ok(Bait::new(format!("default\n  login deploy\n  password {password}\n"), [password]))
}

fn key(kind: &str, head: &str) -> Result<Bait, PathError> {
    let (text, secrets) = armored(kind, head)?;
    Ok(Bait::new(text, secrets))
}

/// A private key's lines of 70 letters, and those of them that are random from end to end.
fn armored(kind: &str, head: &str) -> Result<(String, Vec<String>), PathError> {
    const LINE: usize = 70;
    let first = format!("{head}{}", random(BASE64, LINE.saturating_sub(head.len()))?);
    let lines = (0..4).map(|_| random(BASE64, LINE)).collect::<Result<Vec<_>, _>>()?;
    let last = random(BASE64, LINE / 2)?;
    let mark = |word: &str| format!("-----{word} {kind}PRIVATE KEY-----\n");
    let body = lines.join("\n");
    let text = format!("{}{first}\n{body}\n{last}==\n{}", mark("BEGIN"), mark("END"));
    Ok((text, lines))
}

fn service_account() -> Result<Bait, PathError> {
    let (key, mut secrets) = armored("", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC")?;
    let id = random(HEX, 40)?;
    let text = json!({
        "type": "service_account",
        "project_id": "build",
        "private_key_id": id,
        "private_key": key,
        "client_email": "deploy@build.example.com",
    });
    secrets.push(id);
    Ok(Bait::new(format!("{text:#}\n"), secrets))
}

fn assignments() -> Result<Bait, PathError> {
    let (key, secret) = (random(WORD, 24)?, random(WORD, 48)?);
    Ok(Bait::new(format!("API_KEY={key}\nAPI_SECRET={secret}\n"), [key, secret]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_looks_like_its_name_and_each_has_secrets_of_its_own() {
        for (path, has) in [
            ("~/.aws/credentials", "aws_secret_access_key = "),
            ("~/.netrc", "password "),
            ("~/.ssh/id_ed25519", "OPENSSH PRIVATE KEY-----"),
            ("~/certs/server.pem", "BEGIN PRIVATE KEY-----"),
            ("~/.config/gcloud/application_default_credentials.json", "\"private_key\": "),
            ("~/.env", "API_SECRET="),
            ("~/.ssh/id_ed25519.pub", "API_SECRET="),
        ] {
            let path = HomePath::new(path).unwrap();
            let (one, other) = (Bait::of(&path).unwrap(), Bait::of(&path).unwrap());
            let text = String::from_utf8(one.bytes).unwrap();
            assert!(text.contains(has) && text.ends_with('\n'), "{text}");
            assert!(!one.secrets.is_empty());
            for secret in &one.secrets {
                assert!(secret.len() >= 20 && text.contains(secret), "{secret} in {text}");
                assert!(!other.secrets.contains(secret), "{secret}");
            }
        }
    }
}
