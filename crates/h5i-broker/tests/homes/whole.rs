//! What has no credential stays as it is, byte for byte.

use h5i_broker::home::{Format, strip};

#[test]
fn a_file_without_credentials_stays_byte_for_byte() {
    for (format, text) in [
        (
            Format::Json,
            "{ \"theme\":\"dark\",\r\n\t\"author\" : \"me\", \"maxTokens\":1e3,\"x\":[ ] }  \n",
        ),
        (
            Format::Json,
            r#"{"permissions":{"allow":["Bash(npm run test:*)","WebFetch(domain:docs.example.com)"]},"keys":{"a":"b"}}"#,
        ),
        (Format::Json, "[1, null, \"text\"]"),
        (
            Format::Toml,
            "# A comment.\r\nmodel = \"m\"   # another\r\n\r\n[ a . \"b.c\" ]\r\nx = '''\r\n# no comment\r\n'''\r\n\
             y = [ 1,\r\n 2, ] # end\r\nz.w = { k = 1979-05-27 }\r\n",
        ),
        (Format::Toml, "model_auto_compact_token_limit = 1000\nbearer_token_env_var = \"X\"\n"),
        (
            Format::Yaml,
            "%YAML 1.2\n---\na: &x  {b: 1, 'c': [x, y]}   # comment\nd: *x\n\n\n? e\n: |+\n  text\n\n  # no comment\nf: !!str 1\n---\n- g\n...\n",
        ),
        (
            Format::GitConfig,
            "# comment\n[user] name = Me\n\temail=\"me@example.com\" ; mine\n[branch \"a]b\"]\n\trebase\n[url \"git@example.com:\"]\n\tinsteadOf = https://example.com/\n",
        ),
        (
            Format::Npmrc,
            "registry=https://r.example.com/\nca[]=x\nca[]=y\n; comment\n\nsave-exact\nauth-type=web\n",
        ),
        (
            Format::Ini,
            "[global]\nindex-url = https://pypi.example.com/simple\n# comment\n\n[install]\nfind-links =\n  a\n  b\n",
        ),
        (Format::Netrc, "machine a login b\n\n# comment\ndefault\n"),
        (
            Format::Shell,
            "export PATH=$PATH:/x\nif [ -n \"$BASH\" ]; then . ~/.x; fi # it's a comment\nalias ll='ls -l'\n\
             cat <<-EOF\n\tIt's text.\n\tEOF\necho \"a\nb\" $((1 << 2)) <<<x\nPS1='\\u:\\w\\$ '",
        ),
        (
            Format::Text,
            "# Title\r\n\nUse `auth: [OAuth](https://example.com)`.\n\tkey: value\nno newline",
        ),
    ] {
        let clean =
            strip(format, text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(clean.removed, [], "{text}");
        assert_eq!(String::from_utf8(clean.bytes).expect("text"), text);
    }
}
