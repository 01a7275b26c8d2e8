//! Names that credentials have.
//!
//! A name is taken apart into words (`apiKey`, `api_key`, `API-KEY` are `api key`; `author` is one
//! word and not `auth`), and run-together ones are looked through for words that stand in no other.

/// Words in a row that make a credential's name, and what it is then.
struct Name {
    words: &'static [&'static str],
    kind: Kind,
    why: &'static str,
}

/// How sure a name is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A number under it is a credential as well.
    Sure,
    /// A number under it counts something: `max_tokens`, `session_timeout`.
    Text,
}

const fn sure(words: &'static [&'static str], why: &'static str) -> Name {
    Name { words, kind: Kind::Sure, why }
}
const fn text(words: &'static [&'static str], why: &'static str) -> Name {
    Name { words, kind: Kind::Text, why }
}

const PASSWORD: &str = "a password by its name";
const SECRET: &str = "a secret by its name";
const TOKEN: &str = "a token by its name";
const LOGIN: &str = "a login by its name";
const KEY: &str = "a key by its name";
const SESSION: &str = "a session by its name";

const NAMES: &[Name] = &[
    // What a person types.
    sure(&["password"], PASSWORD),
    sure(&["passwords"], PASSWORD),
    sure(&["passwd"], PASSWORD),
    sure(&["passphrase"], PASSWORD),
    sure(&["passcode"], PASSWORD),
    sure(&["passkey"], PASSWORD),
    sure(&["pass"], PASSWORD),
    sure(&["pwd"], PASSWORD),
    sure(&["pw"], PASSWORD),
    sure(&["pin"], PASSWORD),
    sure(&["otp"], PASSWORD),
    sure(&["totp"], PASSWORD),
    sure(&["mnemonic"], PASSWORD),
    // What services hand out.
    sure(&["secret"], SECRET),
    sure(&["secrets"], SECRET),
    sure(&["credential"], SECRET),
    sure(&["credentials"], SECRET),
    sure(&["cred"], SECRET),
    sure(&["creds"], SECRET),
    text(&["token"], TOKEN),
    text(&["tokens"], TOKEN),
    text(&["bearer"], TOKEN),
    text(&["jwt"], TOKEN),
    sure(&["pat"], TOKEN),
    text(&["refresh"], TOKEN),
    text(&["csrf"], TOKEN),
    text(&["xsrf"], TOKEN),
    text(&["sas"], TOKEN),
    // Docker's `auths`, npm's `_auth`, HTTP's header.
    text(&["auth"], LOGIN),
    text(&["auths"], LOGIN),
    text(&["oauth"], LOGIN),
    text(&["authorization"], LOGIN),
    text(&["authentication"], LOGIN),
    // An address that is the whole credential.
    text(&["webhook"], LOGIN),
    text(&["webhooks"], LOGIN),
    text(&["connection", "string"], LOGIN),
    // Keys of services, not of maps or keyboards: `key` alone is none.
    text(&["api", "key"], KEY),
    text(&["api", "keys"], KEY),
    text(&["access", "key"], KEY),
    text(&["private", "key"], KEY),
    text(&["signing", "key"], KEY),
    text(&["encryption", "key"], KEY),
    text(&["master", "key"], KEY),
    text(&["shared", "key"], KEY),
    text(&["account", "key"], KEY),
    text(&["service", "key"], KEY),
    text(&["ssh", "key"], KEY),
    text(&["license", "key"], KEY),
    text(&["session"], SESSION),
    text(&["sessions"], SESSION),
    text(&["cookie"], SESSION),
    text(&["cookies"], SESSION),
];

/// Words that are found inside of a longer one, as in `myaccesstoken`: they stand in no other word.
const INSIDE: &[(&str, &str)] = &[
    ("password", PASSWORD),
    ("passwd", PASSWORD),
    ("passphrase", PASSWORD),
    ("secret", SECRET),
    ("credential", SECRET),
    ("apikey", KEY),
    ("accesskey", KEY),
    ("privatekey", KEY),
    ("authtoken", TOKEN),
    ("accesstoken", TOKEN),
    ("refreshtoken", TOKEN),
    ("bearertoken", TOKEN),
    ("sessiontoken", TOKEN),
    ("sessionid", SESSION),
];

/// Last words of names that say something *about* a credential: where it lies, how it is called.
const ABOUT: &[&str] = &[
    "env",
    "var",
    "envvar",
    "variable",
    "file",
    "path",
    "dir",
    "directory",
    "url",
    "uri",
    "endpoint",
    "type",
    "kind",
    "method",
    "mode",
    "store",
    "storage",
    "limit",
    "count",
    "budget",
    "timeout",
    "ttl",
    "interval",
    "length",
    "size",
    "enabled",
    "required",
    "stdin",
];

/// Words that make a random-looking value suspicious.
const SUSPICIOUS: &[&str] = &[
    "key",
    "keys",
    "id",
    "sig",
    "signature",
    "cert",
    "certificate",
    "header",
    "headers",
    "login",
    "user",
    "username",
    "license",
    "dsn",
    "connection",
    "hash",
    "salt",
    "seed",
    "value",
    "env",
    "arg",
    "args",
    "command",
    "url",
    "endpoint",
];

/// Why something under this name is a credential; `None` where the name is another's. A number is
/// judged less strictly.
pub(super) fn credential(name: &str, number: bool) -> Option<&'static str> {
    let words = words(name);
    if words.last().is_some_and(|last| ABOUT.contains(&last.as_str())) {
        return None;
    }
    let fits = |name: &&Name| {
        (!number || name.kind == Kind::Sure)
            && words.windows(name.words.len()).any(|row| row == name.words)
    };
    if let Some(name) = NAMES.iter().find(fits) {
        return Some(name.why);
    }
    let inside = INSIDE.iter().find(|(part, _)| words.iter().any(|word| word.contains(part)));
    let ends = || words.iter().any(|word| word.ends_with("token")).then_some(TOKEN);
    // Not inside of a word: `coauthor`.
    let begins = || words.iter().any(|word| word.starts_with("oauth")).then_some(LOGIN);
    inside.map(|(_, why)| *why).or_else(ends).or_else(begins).filter(|_| !number)
}

/// Whether a random-looking value under this name is likely a credential.
pub(super) fn suspicious(name: &str) -> bool {
    let words = words(name);
    words.iter().any(|word| SUSPICIOUS.contains(&word.as_str()))
        || NAMES.iter().any(|name| words.windows(name.words.len()).any(|row| row == name.words))
}

/// The words of a name, in lower case, without digits at their ends.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut open = false;
    let characters: Vec<char> = name.chars().collect();
    for (at, c) in characters.iter().enumerate() {
        if !c.is_alphanumeric() {
            open = false;
            continue;
        }
        let before = at.checked_sub(1).map(|before| characters[before]);
        let after = characters.get(at + 1);
        // `apiKey`, and `APIKey`.
        let begins = c.is_uppercase()
            && (before.is_some_and(|before| !before.is_uppercase())
                || after.is_some_and(|after| after.is_lowercase()));
        if begins || !open {
            words.push(String::new());
        }
        open = true;
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
    }
    for word in &mut words {
        word.truncate(word.trim_end_matches(|c: char| c.is_ascii_digit()).len());
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::credential;

    #[test]
    fn credentials_are_known_by_their_names_in_every_spelling() {
        for name in [
            "token",
            "TOKEN",
            "_authToken",
            "authToken",
            "auth_token",
            "github-token",
            "githubtoken",
            "apiKey",
            "APIKey",
            "apikey",
            "API_KEY",
            "API_KEY_2",
            "ANTHROPIC_API_KEY",
            "x-api-key",
            "password",
            "dbPassword",
            "DBPASSWORD",
            "_password",
            "passwd",
            "db.pass",
            "client_secret",
            "clientsecret",
            "oauthAccount",
            "claudeAiOauth",
            "tokens",
            "refresh_token",
            "auth",
            "auths",
            "_auth",
            "Authorization",
            "Proxy-Authorization",
            "cookie",
            "Set-Cookie",
            "session",
            "sessionId",
            "private_key",
            "privateKey",
            "aws_access_key_id",
            "credentials",
            "primaryApiKey",
            "apiKeyHelper",
            "customApiKeyResponses",
            "webhook",
            "connectionString",
            "//registry.example.com/:_authToken",
            "awsAuthRefresh",
            "password2",
        ] {
            assert!(credential(name, false).is_some(), "{name}");
        }
    }

    #[test]
    fn other_names_are_not() {
        for name in [
            "author",
            "authors",
            "authority",
            "authored",
            "coauthor",
            "unauthorized",
            "key",
            "keys",
            "keymap",
            "keybindings",
            "env_key",
            "monkey",
            "compass",
            "bypass",
            "passive",
            "tokenizer",
            "secretary_",
            "pinned",
            "spinner",
            "sessional",
            "refreshed",
            "signature",
            "email",
            "name",
            "registry",
            "cooking",
            "path",
            "patch",
            "pattern",
            "bearer_token_env_var",
            "token_url",
            "password_file",
            "auth_type",
            "cli_auth_credentials_store",
        ] {
            let known = credential(name, false).is_some();
            // `secretary` is the price of finding `mysecret`.
            assert_eq!(known, name == "secretary_", "{name}");
        }
    }

    #[test]
    fn a_number_is_a_credential_under_a_sure_name_only() {
        for name in ["password", "pin", "secret"] {
            assert!(credential(name, true).is_some(), "{name}");
        }
        for name in ["max_tokens", "model_auto_compact_tokens", "session_age", "refreshInterval2"] {
            assert!(credential(name, true).is_none(), "{name}");
        }
    }
}
