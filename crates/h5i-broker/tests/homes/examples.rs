//! A canary in names, values, comments, lists, texts of several lines, and URLs.

use h5i_broker::home::{Format, StripError, strip};

/// What is left of a file, which has no canary, and how many things were removed.
fn stripped(format: Format, text: &str) -> (String, usize) {
    let clean = strip(format, text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
    for removed in &clean.removed {
        assert!(!removed.place.contains("canary"), "{removed:?}");
    }
    let left = String::from_utf8(clean.bytes).expect("text");
    assert!(!left.contains("canary"), "{left}");
    (left, clean.removed.len())
}

#[test]
fn json() {
    let text = r#"{
  "theme": "dark",
  "apiKey": "canary",
  "env": {"FOO": "1", "API_TOKEN": "canary", "MAX_TOKENS": "4096"},
  "list": [{"a": {"b": [{"password": 12345, "user": "me"}]}}, "https://u:canary@example.com/"],
  "oauthAccount": {"accountUuid": "canary", "deep": {"x": ["canary"]}},
  "hooks": [{"command": "curl -H 'Authorization: Bearer canary-01'"}],
  "args": ["--verbose", "--token", "canary", "--name", "x"],
  "curl": ["-u", "me:canary", "-u", "1000:1000", "--proxy-user", "me:$PASSWORD"],
  "remote": "https://canary0123456789abcdef@example.com/x.git",
  "proxy": "me:canary@proxy.example.com:3128",
  "variables": [{"name": "DB_PASSWORD", "value": "canary"}, {"name": "PORT", "value": "80"}],
  "sk-ant-canary-0123456789": true,
  "nested": "{\"refreshToken\":\"canary\"}",
  "pem": "-----BEGIN RSA PRIVATE KEY-----\ncanary\n-----END RSA PRIVATE KEY-----",
  "esc\u0061ped\u0054oken": "canary",
  "deploy_key": "canary0d081884c7d659a2feaa0c55ad015a3bf4f1b",
  "hasToken": true,
  "token": "",
  "session": null,
  "cookies": []
}"#;
    let (left, removed) = stripped(Format::Json, text);
    assert_eq!(
        left,
        r#"{
  "theme": "dark",
  "env": {"FOO": "1", "MAX_TOKENS": "4096"},
  "list": [{"a": {"b": [{"user": "me"}]}}],
  "hooks": [{}],
  "args": ["--verbose", "--name", "x"],
  "curl": ["-u", "1000:1000", "--proxy-user", "me:$PASSWORD"],
  "variables": [{"name": "DB_PASSWORD"}, {"name": "PORT", "value": "80"}],
  "hasToken": true,
  "token": "",
  "session": null,
  "cookies": []
}"#
        .replace(r#", "MAX_TOKENS": "4096""#, "")
    );
    assert_eq!(removed, 19);
    let places: Vec<String> = strip(Format::Json, text.as_bytes())
        .expect("JSON")
        .removed
        .into_iter()
        .map(|removed| removed.place)
        .collect();
    assert!(places.contains(&"list.0.a.b.0.password".to_owned()), "{places:?}");
}

#[test]
fn toml() {
    let text = r#"# theme of the editor
theme = "dark" # token = "canary-1"
# github_token = "canary"
api_key = 'canary'

[mcp_servers.docs]
command = "docs"
args = ["--token=canary", "--port", "1"]
env = { LANG = "C", API_KEY = "canary" } # kept
env_key = "OPENAI_API_KEY"

[mcp_servers.docs.headers]
x-request = "1"
authorization = """
canary
canary"""

[[registry]]
index = "https://user:canary@example.com/git#1"
name = "a#b"

[[registry]]
token = "canary"
name = "second"

[auth.deep.down]
x = "canary"

[model]
max_tokens = 4096
"#;
    let (left, removed) = stripped(Format::Toml, text);
    assert_eq!(
        left,
        r#"# theme of the editor
theme = "dark" 

[mcp_servers.docs]
command = "docs"
args = [ "--port", "1"]
env = { LANG = "C"} # kept
env_key = "OPENAI_API_KEY"

[mcp_servers.docs.headers]
x-request = "1"

[[registry]]
name = "a#b"

[[registry]]
name = "second"

[model]
max_tokens = 4096
"#
    );
    assert_eq!(removed, 9);
}

#[test]
fn yaml() {
    let text = r#"# users of example.com
github.com:
  user: me   # token: canary-2
  oauth_token: canary
  git_protocol: https
servers:
  - name: a
    password: "canary"
    url: https://example.com
  - token: canary
    name: b
  - {name: c, api_key: canary, port: 1}
key: |
  -----BEGIN OPENSSH PRIVATE KEY-----
  canary
  -----END OPENSSH PRIVATE KEY-----
script: >-
  curl --token=canary
  https://example.com
? secret
: canary
list:
  - --password
  - canary
  - 'x'
'sk-ant-canary-0123': 1
max_tokens: 100
last:
  session: canary
"#;
    let (left, removed) = stripped(Format::Yaml, text);
    assert_eq!(
        left,
        r#"# users of example.com
github.com:
  user: me   
  git_protocol: https
servers:
  - name: a
    url: https://example.com
  - name: b
  - {name: c, port: 1}
list:
  - 'x'
max_tokens: 100
last:
  
"#
    );
    assert_eq!(removed, 12);
}

#[test]
fn git_config() {
    let text = "[user]\n\tname = Me ; comment\n\temail = me@example.com\n\
        # token = canary1\n\
        [credential \"https://example.com\"]\n\thelper = canary\n\
        [url \"https://u:canary@example.com/\"]\n\tinsteadOf = https://example.com/\n\
        [http \"https://example.com\"]\n\textraHeader = Authorization: Basic canary-0123\n\tproxy = http://u:canary@proxy\n\
        [sendemail] smtpPass = canary\n\
        [alias]\n\tco = checkout \\\n\t\t--quiet\n\tpush2 = !curl \\\n\t --token=canary\n";
    let (left, removed) = stripped(Format::GitConfig, text);
    assert_eq!(
        left,
        "[user]\n\tname = Me ; comment\n\temail = me@example.com\n\
        [http \"https://example.com\"]\n\
        [alias]\n\tco = checkout \\\n\t\t--quiet\n"
    );
    assert_eq!(removed, 7);
}

#[test]
fn npmrc() {
    let text = "registry=https://registry.example.com/\n\
        @acme:registry=https://npm.example.com/\n\
        //npm.example.com/:_authToken=canary\n\
        //npm.example.com/:_authToken = ${CANARY}\n\
        _auth=\"canary\"\n//npm.example.com/:_password=canary\n//npm.example.com/:username=me\n\
        ; _authToken=canary\n\
        https-proxy=http://u:canary@proxy:1/\n\
        key=\"-----BEGIN RSA PRIVATE KEY-----\\ncanary\"\n\
        always-auth=true\nsave-exact\n";
    let (left, removed) = stripped(Format::Npmrc, text);
    assert_eq!(
        left,
        "registry=https://registry.example.com/\n\
        @acme:registry=https://npm.example.com/\n//npm.example.com/:username=me\n\
        always-auth=true\nsave-exact\n"
    );
    assert_eq!(removed, 7);
}

#[test]
fn ini() {
    let text = "[global]\ntimeout = 60\nindex-url = https://u:canary@pypi.example.com/simple\n\
        extra-index-url =\n    https://a.example.com/\n    https://u:canary@b.example.com/\n\
        # password: canary\n\
        [distutils]\nindex-servers =\n    pypi\n    testpypi\n\n\
        [pypi]\nusername = __token__\npassword = pypi-canary\n\
        [secrets]\nx = canary\ny =\n  canary\n[last]\nauthor: me\n";
    let (left, removed) = stripped(Format::Ini, text);
    assert_eq!(
        left,
        "[global]\ntimeout = 60\n\
        [distutils]\nindex-servers =\n    pypi\n    testpypi\n\n\
        [pypi]\nusername = __token__\n[last]\nauthor: me\n"
    );
    assert_eq!(removed, 7);
}

#[test]
fn netrc() {
    let text = "machine a.example.com login me password canary\n\
        machine b.example.com\n  login you\n  password \"can\\\"ary canary\" account canary\n\
        # machine c login x password canary\n\
        machine d login ghp_canary0123456789012\n\
        macdef init\nput --token=canary\n\ndefault login anonymous\n";
    let (left, removed) = stripped(Format::Netrc, text);
    assert_eq!(
        left,
        "machine a.example.com login me\n\
        machine b.example.com\n  login you\n\n\nmachine d\n\n\ndefault login anonymous\n"
    );
    assert_eq!(removed, 6);
}

#[test]
fn shell() {
    let text = "# my shell\nexport EDITOR=vi # token=canary\nexport PATH=\"$HOME/bin:$PATH\"\n\
        if true; then\n  export API_TOKEN=canary OTHER=1\nfi\n\
        GITHUB_TOKEN='canary\ncanary'\n\
        tokens=(canary canary)\npassword+=canary\n\
        alias up='curl -H \"Authorization: Bearer canary-01\" \\\n  https://example.com'\n\
        set -gx DB_PASSWORD canary\nlogin --password canary\n\
        cat <<'END' >file\nsecret=canary\nEND\n\
        export TOKEN=$OTHER_TOKEN\nexport SECRET=\"${SECRET}\"\nexport MAX_TOKENS=100\n\
        git clone https://me:canary@example.com/x\nexport AUTHOR=me\n";
    let (left, removed) = stripped(Format::Shell, text);
    assert_eq!(
        left,
        "# my shell\n:\nexport PATH=\"$HOME/bin:$PATH\"\n\
        if true; then\n  :\nfi\n:\n:\n:\n:\n:\n:\n:\n\
        export TOKEN=$OTHER_TOKEN\nexport SECRET=\"${SECRET}\"\nexport MAX_TOKENS=100\n\
        :\nexport AUTHOR=me\n"
    );
    assert_eq!(removed, 10);
}

#[test]
fn text() {
    let text = "# Notes\n\nUse the token: it is in the vault. Authentication is by cookie.\n\
        API_KEY=canary0123\nexport TOKEN=<yours>\n\
        -----BEGIN EC PRIVATE KEY-----\ncanary\n-----END EC PRIVATE KEY-----\n\
        psql postgres://u:canary@db/x\nghp_canary0123456789012\nThe end.\n";
    let (left, removed) = stripped(Format::Text, text);
    assert_eq!(
        left,
        "# Notes\n\nUse the token: it is in the vault. Authentication is by cookie.\n\
        export TOKEN=<yours>\nThe end.\n"
    );
    assert_eq!(removed, 4);
}

#[test]
fn cargo_credentials() {
    let text = "[registry]\ntoken = \"canary\"\n[registries.acme]\nindex = \"sparse+https://x/\"\ntoken = \"canary\"\n";
    let (left, removed) = stripped(Format::Toml, text);
    assert_eq!(left, "[registry]\n[registries.acme]\nindex = \"sparse+https://x/\"\n");
    assert_eq!(removed, 2);
}

#[test]
fn what_is_not_understood_is_not_copied_at_all() {
    for (format, text) in [
        (Format::Json, "{\"token\": \"canary\""),
        (Format::Json, "// comment\n{}"),
        (Format::Toml, "a = = 1"),
        (Format::Yaml, "a: [1, 2"),
        (Format::Yaml, "? {a: b}\n: c"),
        (Format::GitConfig, "[user\nname = x"),
        (Format::GitConfig, "what is this = 1"),
        (Format::Ini, "no delimiter"),
        (Format::Netrc, "machine"),
        (Format::Netrc, "password \"open"),
        (Format::Netrc, "what is this"),
        (Format::Shell, "export A='open"),
        (Format::Shell, "cat <<END\nx"),
    ] {
        assert_eq!(strip(format, text.as_bytes()), Err(StripError::NotUnderstood), "{text}");
    }
    assert_eq!(strip(Format::Text, b"\xff"), Err(StripError::NotText));
    assert_eq!(strip(Format::Json, "\u{feff}{}".as_bytes()), Err(StripError::NotText));
    assert_eq!(strip(Format::Json, b"\"Bearer canary0123\""), Err(StripError::NotClean));
    // A name of an anchor, which no value holds; and one that is gone with what it named.
    for text in ["a: &ghp_canary0123456789012 1\n", "token: &t canary\nother: *t\n"] {
        assert_eq!(strip(Format::Yaml, text.as_bytes()), Err(StripError::NotClean), "{text}");
    }
}
