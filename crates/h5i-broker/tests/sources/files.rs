use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::sync::Arc;

use h5i_broker::{CredentialError, Credentials as _};
use h5i_testkit::{Need, have};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::support::{Home, file, headers, told};

const BEARER: Option<&str> = Some("authorization: Bearer {}");

/// The header that a secret's reference gives, or what the refusal says.
fn header(home: &Home, secret: &str) -> Result<String, String> {
    let credential = home.grant("api.example.com", secret, BEARER).current();
    credential.map(|credential| headers(&credential).join("|")).map_err(|error| told(&error))
}

#[test]
fn a_secret_is_found_in_each_kind_of_source() {
    let mut home = Home::new();
    home.variables.insert("API_TOKEN", "of-the-variable".to_owned());
    let plain = file(&home.put("plain", "of-the-file\n"));
    let lines = file(&home.put("lines", "user\r\nof-the-line\r\n"));
    let json = file(&home.put("json", r#"{"a":[{"b/c":"of-the-\u0070ointer"}]}"#));
    for (secret, value) in [
        ("env:API_TOKEN", "of-the-variable"),
        (&plain, "of-the-file"),
        (&format!("{lines}#L2"), "of-the-line"),
        (&format!("{json}#/a/0/b~1c"), "of-the-pointer"),
        ("command:echo of-the-program", "of-the-program"),
    ] {
        assert_eq!(header(&home, secret), Ok(format!("authorization: Bearer {value}")), "{secret}");
    }
}

#[test]
fn a_missing_secret_is_refused_by_its_reference_and_reason() {
    let mut home = Home::new();
    home.variables.insert("EMPTY", String::new());
    let (lines, json) = (file(&home.put("lines", "one\n")), file(&home.put("json", r#"{"a":1}"#)));
    let empty = file(&home.put("empty", "\n"));
    for (secret, reason) in [
        ("env:NONE", "not set"),
        ("env:EMPTY", "not set, or empty"),
        (&file(&home.path("none")), "No such file"),
        (&empty, "empty"),
        (&format!("{lines}#L2"), "no line 2"),
        (&format!("{lines}#/a"), "no JSON"),
        (&format!("{json}#/a"), "no string"),
        (&format!("{json}#/b"), "no string"),
    ] {
        let told = header(&home, secret).expect_err(secret);
        assert!(told.contains(secret) && told.contains(reason), "{secret}: {told}");
    }
}

#[test]
fn only_a_regular_file_of_ones_own_that_nobody_else_may_write_is_read() {
    let home = Home::new();
    let path = home.put("token", "canary");
    let linked = home.path("linked");
    symlink(&path, &linked).expect("a link");
    header(&home, &file(&linked)).expect("a person's link is followed");

    for mode in [0o620, 0o602] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("a mode");
        let told = header(&home, &file(&linked)).expect_err("others may write");
        assert!(told.contains("chmod go-w"), "{told}");
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("a mode");
    header(&home, &file(&path)).expect("a secret");

    let pipe = home.path("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    for path in [&pipe, home.directory.path()] {
        let told = header(&home, &file(path)).expect_err("no file");
        assert!(told.contains("no regular file"), "{told}");
    }

    let large = home.put("large", &"x".repeat((64 << 10) + 1));
    assert!(header(&home, &file(&large)).expect_err("too large").contains("larger than 64 KiB"));
    let largest = home.put("large", &"x".repeat(64 << 10));
    header(&home, &file(&largest)).expect("a secret");
}

#[test]
fn a_file_of_another_user_is_refused_and_one_of_root_is_not() {
    let home = Home::new();
    header(&home, "file:/etc/passwd#L1").expect("a file of root's");
    if !have("a_file_of_another_user_is_refused_and_one_of_root_is_not", Need::SecondUid) {
        return;
    }
    let path = home.put("token", "canary");
    header(&home, &file(&path)).expect("a secret");
    std::os::unix::fs::chown(&path, Some(12345), None).expect("another owner");
    let told = header(&home, &file(&path)).expect_err("another's");
    assert!(told.contains("belongs to another user"), "{told}");
}

#[test]
fn a_value_that_could_split_a_message_is_refused_by_name() {
    let home = Home::new();
    for value in ["a\r\nx: y", "a\nb", "a\0b", "a\tb", "\u{e9}", " a", "a ", "a\n\n", "a\x7f"] {
        let secret = file(&home.put("token", value));
        let error =
            home.grant("api.example.com", &secret, BEARER).current().expect_err("no header");
        assert!(matches!(error, CredentialError::NoHeaderValue { .. }), "{value:?}: {error}");
        assert!(error.to_string().contains(&secret));
    }
    let secret = file(&home.put("token", "a b\n"));
    assert_eq!(header(&home, &secret), Ok("authorization: Bearer a b".to_owned()));
}

#[test]
fn a_secret_can_be_a_users_password() {
    let home = Home::new();
    let secret = file(&home.put("token", "hunter2\n"));
    let template = "authorization: Basic {basic:x-access-token}";
    let found =
        home.grant("api.example.com", &secret, Some(template)).current().expect("a credential");
    assert_eq!(headers(&found), ["authorization: Basic eC1hY2Nlc3MtdG9rZW46aHVudGVyMg=="]);
    // Neither the secret nor what it is a part of is to be in an answer.
    let secrets: Vec<&[u8]> = found.secrets.iter().map(|secret| secret.expose()).collect();
    assert_eq!(secrets, [&b"hunter2"[..], b"eC1hY2Nlc3MtdG9rZW46aHVudGVyMg=="]);
}

#[test]
fn the_same_value_gives_the_same_credential_and_a_changed_file_another_one() {
    let home = Home::new();
    let path = home.put("token", "first");
    let grant = home.grant("api.example.com", &file(&path), BEARER);
    let first = grant.current().expect("a credential");
    assert!(Arc::ptr_eq(&first, &grant.current().expect("a credential")));
    assert!(grant.renewed(&first).expect("an answer").is_none(), "there is no other");

    home.put("token", "second");
    let second = grant.renewed(&first).expect("an answer").expect("another");
    assert_eq!(headers(&second), ["authorization: Bearer second"]);
    assert!(Arc::ptr_eq(&second, &grant.current().expect("a credential")));
    assert_eq!(second.secrets[0].expose(), b"second");
}

#[test]
fn a_program_is_asked_once_for_a_grant() {
    let home = Home::new();
    let asked = home.path("asked");
    let program =
        home.put("program", &format!("#!/bin/sh\necho x >>'{}'\necho token\n", asked.display()));
    let grant = home.grant("api.example.com", &format!("command:sh {}", program.display()), BEARER);
    let first = grant.current().expect("a credential");
    grant.current().expect("a credential");
    assert!(grant.renewed(&first).expect("an answer").is_none());
    assert_eq!(fs::read_to_string(&asked).expect("a count"), "x\n");
}

#[test]
fn a_program_that_fails_tells_one_line_and_no_secret() {
    let home = Home::new();
    let script = format!(
        "#!/bin/sh\necho canary-0123456789\necho >&2\necho 'no canary-0123456789 for \x1b[31myou{}' >&2\n\
         echo second >&2\nexit 3\n",
        "!".repeat(300),
    );
    let program = home.put("program", &script);
    let told = header(&home, &format!("command:sh {}", program.display())).expect_err("it fails");
    assert!(told.contains("exit status: 3"), "{told}");
    assert!(told.contains("no ***"), "{told}");
    for absent in ["canary", "second", "\x1b", &"!".repeat(200)] {
        assert!(!told.contains(absent), "{absent:?} in {told}");
    }
}

#[test]
fn the_password_of_basic_credentials_is_kept_from_the_box_as_well() {
    let home = Home::new();
    // `user:hunter22`
    let secret = file(&home.put("token", "dXNlcjpodW50ZXIyMg=="));
    let grant = home.grant("git.example.com", &secret, Some("authorization: Basic {}"));
    let credential = grant.current().expect("a credential");
    let secrets: Vec<&[u8]> = credential.secrets.iter().map(|secret| secret.expose()).collect();
    assert_eq!(secrets, [&b"dXNlcjpodW50ZXIyMg=="[..], b"hunter22"]);
    let bearer = home.grant("git.example.com", &secret, BEARER).current().expect("a credential");
    assert_eq!(bearer.secrets.len(), 1);
}

#[test]
fn nothing_prints_a_secret() {
    let mut home = Home::new();
    home.variables.insert("API_TOKEN", "canary".to_owned());
    let grant = home.grant("api.example.com", "env:API_TOKEN", BEARER);
    let credential = grant.current().expect("a credential");
    assert!(!format!("{credential:?} {grant:?} {:?}", home.sources()).contains("canary"));
}
