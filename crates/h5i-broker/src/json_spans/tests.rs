use proptest::prelude::*;
use serde_json::Value;

use super::{Kind, Node};

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        "[\"\\\\/\n]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[a-z\"~/]{0,3}", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The value that the places in `text` tell.
fn rebuilt(text: &str, node: &Node) -> Value {
    match &node.kind {
        Kind::Object(members) => members
            .iter()
            .map(|member| {
                let key = super::string(text, &member.key).expect("a key");
                (key.as_str().to_owned(), rebuilt(text, &member.value))
            })
            .collect(),
        Kind::Array(items) => items.iter().map(|item| rebuilt(text, item)).collect(),
        Kind::Text => node.string(text).expect("a string").as_str().into(),
        Kind::Other => serde_json::from_str(&text[node.at.clone()]).expect("a value"),
    }
}

proptest! {
    #[test]
    fn the_places_are_those_of_the_values(value in json(), pretty in any::<bool>()) {
        let text = if pretty { format!(" {value:#}\n") } else { value.to_string() };
        let node = Node::parse(&text).expect("JSON");
        prop_assert_eq!(&text[node.at.clone()], text.trim());
        prop_assert_eq!(rebuilt(&text, &node), value);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[\\[\\]{}\",:\\\\a1 ]{0,20}") {
        let known: Result<Value, _> = serde_json::from_str(&text);
        prop_assert_eq!(Node::parse(&text).is_some(), known.is_ok());
    }
}

#[test]
fn a_pointer_finds_what_serde_json_finds() {
    let text = r#"{"a":{"b/c":["x","y"],"~":"t","":"e"},"a2":1,"d":"1","d":"2"}"#;
    let (node, value) =
        (Node::parse(text).expect("JSON"), serde_json::from_str::<Value>(text).expect("JSON"));
    for pointer in
        ["/a/b~1c/0", "/a/b~1c/1", "/a/~0", "/a/", "/d", "/a/b~1c/01", "/a/b~1c/2", "/a/x", "/a2/x"]
    {
        let found = node.pointed(text, pointer).and_then(|node| node.string(text));
        let known = value.pointer(pointer).and_then(Value::as_str);
        assert_eq!(found.as_ref().map(|text| text.as_str()), known, "{pointer}");
    }
}
