//! Under a name that credentials have nothing remains, wherever it lies, and everything else does.

use h5i_broker::home::{Format, strip};
use proptest::prelude::*;
use serde_json::{Map, Value};

const CANARY: &str = "c4nary";
/// Names of credentials, in several spellings.
const CREDENTIALS: &[&str] = &[
    "token",
    "authToken",
    "_authToken",
    "API_KEY",
    "apikey",
    "x-api-key",
    "password",
    "dbPassword",
    "secret",
    "client_secret",
    "auth",
    "oauthAccount",
    "refreshToken",
    "session",
    "cookie",
    "private_key",
    "credentials",
    "authorization",
];
/// Names that are none.
const OTHERS: &[&str] =
    &["author", "key", "max_size", "registry", "a b", "editor", "x.y", "authority", "#", "ü", "-"];

fn plain() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i32>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        "[a-z #\"'\\\\\n]{0,6}".prop_map(Value::from),
    ]
}

fn name() -> impl Strategy<Value = String> {
    proptest::sample::select(OTHERS).prop_map(str::to_owned)
}

/// A canary in a text, a list or a map.
fn hidden() -> impl Strategy<Value = Value> {
    let text =
        "[a-z \n#\"]{0,3}".prop_map(|around| Value::from(format!("{around}{CANARY}{around}")));
    text.prop_recursive(3, 6, 2, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 1..3).prop_map(Value::from),
            (name(), inner)
                .prop_map(|(name, value)| Value::Object(Map::from_iter([(name, value)]))),
        ]
    })
}

/// A tree with canaries under names of credentials only.
fn tree() -> impl Strategy<Value = Value> {
    let members = |inner: BoxedStrategy<Value>| {
        let credential = proptest::sample::select(CREDENTIALS).prop_map(str::to_owned);
        let one = prop_oneof![3 => (name(), inner), 1 => (credential, hidden())];
        proptest::collection::vec(one, 0..5)
            .prop_map(|all| Value::Object(all.into_iter().collect()))
    };
    let inner = plain().prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            members(inner.boxed()),
        ]
    });
    members(inner.boxed())
}

/// The same tree without what credentials' names lead to: a second, simpler implementation.
fn without(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(name, _)| !CREDENTIALS.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), without(value)))
            .collect(),
        Value::Array(items) => items.iter().map(without).collect(),
        other => other.clone(),
    }
}

fn left(format: Format, text: &str) -> String {
    let clean = strip(format, text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
    let clean_text = String::from_utf8(clean.bytes).expect("text");
    assert!(!clean_text.contains(CANARY), "{text}\n=>\n{clean_text}");
    assert_eq!(clean.removed.is_empty(), !text.contains(CANARY));
    if clean.removed.is_empty() {
        assert_eq!(clean_text, text);
    }
    clean_text
}

/// Block style; texts are quoted as in JSON, which YAML allows.
fn yaml(value: &Value, indent: usize, out: &mut String) {
    let space = " ".repeat(indent);
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                out.push_str(&format!("\n{space}{}:", Value::from(name.as_str())));
                yaml(value, indent + 2, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                out.push_str(&format!("\n{space}-"));
                yaml(item, indent + 2, out);
            }
        }
        other => out.push_str(&format!(" {other}")),
    }
}

/// What YAML makes of a removal that leaves a collection empty: nothing.
fn emptied(value: &Value) -> Value {
    match value {
        Value::Object(members) if members.is_empty() => Value::Null,
        Value::Array(items) if items.is_empty() => Value::Null,
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), emptied(value))).collect()
        }
        Value::Array(items) => items.iter().map(emptied).collect(),
        other => other.clone(),
    }
}

/// A TOML table that only names others is gone with the last of them.
fn pruned(value: &Value) -> Value {
    let some = |value: &Value| !matches!(value, Value::Object(members) if members.is_empty());
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), pruned(value)))
            .filter(|(_, value)| some(value))
            .collect(),
        Value::Array(items) => items.iter().map(pruned).filter(some).collect(),
        other => other.clone(),
    }
}

/// Reads what [`yaml`] writes, with the parser's events.
fn read_yaml(text: &str) -> Value {
    use granit_parser::{Event, Parser, ScalarStyle};
    let mut stack: Vec<(Value, Option<String>)> = vec![(Value::Array(Vec::new()), None)];
    for event in Parser::new_from_str(text) {
        let (event, _) = event.expect("YAML");
        let node = match event {
            Event::MappingStart(..) => {
                stack.push((Value::Object(Map::new()), None));
                continue;
            }
            Event::SequenceStart(..) => {
                stack.push((Value::Array(Vec::new()), None));
                continue;
            }
            Event::MappingEnd | Event::SequenceEnd => stack.pop().expect("a collection").0,
            Event::Scalar(text, ScalarStyle::Plain, ..) if text == "~" => Value::Null,
            Event::Scalar(text, ScalarStyle::Plain, ..) => {
                serde_json::from_str(&text).expect("a value")
            }
            Event::Scalar(text, ..) => Value::from(text.as_ref()),
            _ => continue,
        };
        let (into, name) = stack.last_mut().expect("a collection");
        match (into, name.take()) {
            (Value::Array(items), _) => items.push(node),
            (Value::Object(members), Some(name)) => drop(members.insert(name, node)),
            (Value::Object(_), None) => *name = node.as_str().map(str::to_owned),
            _ => panic!("no collection"),
        }
    }
    let documents = stack.pop().expect("documents").0;
    documents.get(0).cloned().unwrap_or(Value::Null)
}

proptest! {
    #[test]
    fn json(tree in tree(), pretty in any::<bool>()) {
        let text = if pretty { format!("{tree:#}\n") } else { tree.to_string() };
        let clean: Value = serde_json::from_str(&left(Format::Json, &text)).expect("JSON");
        prop_assert_eq!(clean, without(&tree));
    }

    #[test]
    fn toml(tree in tree()) {
        let text = toml::to_string_pretty(&tree).expect("TOML");
        let clean: Value = toml::from_str(&left(Format::Toml, &text)).expect("TOML");
        prop_assert_eq!(pruned(&clean), pruned(&without(&tree)));
    }

    #[test]
    fn yaml_in_blocks_and_flows(tree in tree(), flow in any::<bool>()) {
        let mut text = String::new();
        if flow { text = tree.to_string() } else { yaml(&tree, 0, &mut text) }
        let clean = read_yaml(&left(Format::Yaml, &text));
        prop_assert_eq!(emptied(&clean), emptied(&without(&tree)));
    }

    #[test]
    fn lines(
        entries in proptest::collection::vec((any::<bool>(), 0..OTHERS.len(), "[a-z0-9]{1,8}"), 0..12),
        format in proptest::sample::select(vec![Format::Npmrc, Format::Ini, Format::GitConfig, Format::Shell]),
    ) {
        let ascii = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric());
        let (mut text, mut expected) = (String::from("[x]\n"), String::from("[x]\n"));
        for (credential, at, value) in entries {
            let names = if credential { CREDENTIALS } else { OTHERS };
            let name = names[at % names.len()];
            if !ascii(name) {
                continue;
            }
            if credential {
                text.push_str(&format!("{name}={value}{CANARY}\n"));
                if format == Format::Shell {
                    expected.push_str(":\n");
                }
            } else {
                text.push_str(&format!("{name}={value}\n"));
                expected.push_str(&format!("{name}={value}\n"));
            }
        }
        prop_assert_eq!(left(format, &text), expected);
    }

    #[test]
    fn comments(
        lines in proptest::collection::vec((any::<bool>(), 0..CREDENTIALS.len(), "[j-m0-9\"']{0,6}"), 0..12),
        // Of these letters no credential's name is made: `pw=a` would be one.
        quoted in "[jklm#=: ]{0,12}",
        format in proptest::sample::select(vec![Format::Toml, Format::Yaml]),
    ) {
        let (mut text, mut expected) = (String::new(), String::new());
        for (at, (credential, name, value)) in lines.into_iter().enumerate() {
            let sign = if format == Format::Toml { " = " } else { ": " };
            // What only looks like a comment, and is a part of a text.
            let entry = format!("k{at}{sign}\"# {quoted}\"");
            let name = CREDENTIALS[name];
            if credential {
                text.push_str(&format!("{entry} # {name}{sign}{value}{CANARY}\n"));
                expected.push_str(&format!("{entry} \n"));
            } else {
                text.push_str(&format!("{entry} # {value}\n"));
                expected.push_str(&format!("{entry} # {value}\n"));
            }
        }
        prop_assert_eq!(left(format, &text), expected);
    }

    #[test]
    fn any_text_is_stripped_or_refused(text in "[\\[\\]{}\":#,='\\\\ \n\tab-]{0,40}", which in 0..9_usize) {
        let formats = [
            Format::Json, Format::Toml, Format::Yaml, Format::GitConfig, Format::Npmrc, Format::Ini,
            Format::Netrc, Format::Shell, Format::Text,
        ];
        if let Ok(clean) = strip(formats[which], text.as_bytes()) {
            prop_assert!(!clean.removed.is_empty() || clean.bytes == text.as_bytes());
        }
    }
}
