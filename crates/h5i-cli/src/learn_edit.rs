//! Writes learned rules into the text of a policy document, and leaves the rest of it as it is.

use std::collections::BTreeSet;

use h5i_policy::{NetMode, NetRule, Tier};
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value};

use crate::failure::{Failure, Kind};

/// What is to be written of one profile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edit<'a> {
    /// Its name.
    pub(crate) profile: &'a str,
    /// What a profile that is new extends.
    pub(crate) extends: Option<&'a str>,
    /// The tier, where it must be another one.
    pub(crate) tier: Option<Tier>,
    /// The mode of the network, where it must be another one.
    pub(crate) mode: Option<NetMode>,
    /// The rules that it has; they are written where the document has no list of its own, because a
    /// list replaces the one before it.
    pub(crate) inherited: &'a BTreeSet<NetRule>,
    /// The rules to add.
    pub(crate) rules: &'a BTreeSet<NetRule>,
}

/// The text with the edit made.
///
/// # Errors
/// A failure when the text is no document that can be edited.
pub(crate) fn edited(text: &[u8], edit: &Edit<'_>) -> Result<String, Failure> {
    let text = std::str::from_utf8(text).map_err(|e| Failure::new(Kind::Usage, &e))?;
    let mut document: DocumentMut =
        text.parse().map_err(|e: toml_edit::TomlError| Failure::new(Kind::Usage, &e))?;
    if !document.contains_key("version") {
        document.insert("version", toml_edit::value(1));
    }
    let profiles = table(document.as_table_mut(), "profile", Header::Implied)?;
    let profile = table(profiles, edit.profile, Header::Written)?;
    let word = |text: &str| toml_edit::value(text);
    if let Some(extends) = edit.extends {
        profile.insert("extends", word(extends));
    }
    if let Some(tier) = edit.tier {
        set(profile, "tier", tier.name());
    }
    let net = table(profile, "net", Header::Written)?;
    if let Some(mode) = edit.mode {
        set(net, "mode", mode.name());
    }
    let own = net.get("allow").is_some();
    if !own {
        net.insert("allow", Item::Value(Value::Array(Array::new())));
    }
    let list = net.get_mut("allow").and_then(Item::as_array_mut);
    let list = list.ok_or_else(|| damaged(edit.profile, "net.allow"))?;
    let inherited = edit.inherited.iter().filter(|_| !own);
    let new: Vec<String> = inherited.chain(edit.rules).map(ToString::to_string).collect();
    append(list, &new);
    Ok(document.to_string())
}

/// Whether a table that is made has a line of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Header {
    Written,
    Implied,
}

fn table<'a>(
    parent: &'a mut dyn TableLike,
    key: &str,
    header: Header,
) -> Result<&'a mut dyn TableLike, Failure> {
    if parent.get(key).is_none() {
        let mut made = Table::new();
        made.set_implicit(header == Header::Implied);
        parent.insert(key, Item::Table(made));
    }
    parent.get_mut(key).and_then(Item::as_table_like_mut).ok_or_else(|| damaged(key, "the table"))
}

/// Sets a word, and leaves the comments beside the old one.
fn set(table: &mut dyn TableLike, key: &str, word: &str) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(value) => {
            let decor = value.decor().clone();
            *value = Value::from(word);
            *value.decor_mut() = decor;
        }
        None => drop(table.insert(key, toml_edit::value(word))),
    }
}

/// Appends to a list, one entry a line, in the manner of the last one that has a line of its own.
fn append(list: &mut Array, new: &[String]) {
    const INDENT: &str = "\n  ";
    // What follows the last entry and its comma belongs to that entry.
    let trailing = list.trailing().as_str().unwrap_or_default().trim_end().to_owned();
    for (at, rule) in new.iter().enumerate() {
        let mut value = Value::from(rule.as_str());
        let before = if at == 0 { format!("{trailing}{INDENT}") } else { INDENT.to_owned() };
        *value.decor_mut() = toml_edit::Decor::new(before, "");
        list.push_formatted(value);
    }
    list.set_trailing("\n");
    list.set_trailing_comma(true);
}

fn damaged(place: &str, what: &str) -> Failure {
    let message = format!("{what} of `{place}` in the user's policy is none that can be edited");
    Failure::told(Kind::Refused, message).hint("write the rules by hand")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use h5i_policy::{NetMode, NetRule, PolicyDocument, Tier};

    use super::{Edit, edited};

    fn rules(all: &[&str]) -> BTreeSet<NetRule> {
        all.iter().map(|rule| NetRule::new(rule).unwrap()).collect()
    }

    fn edit(text: &str, tier: Option<Tier>, mode: Option<NetMode>) -> String {
        let (inherited, rules) = (rules(&["host:11434"]), rules(&["a.example", "b.example:22"]));
        let profile = "web";
        let (inherited, rules) = (&inherited, &rules);
        let edit = Edit { profile, extends: None, tier, mode, inherited, rules };
        let text = edited(text.as_bytes(), &edit).unwrap();
        PolicyDocument::parse("edited", text.as_bytes()).unwrap();
        text
    }

    #[test]
    fn an_empty_text_becomes_a_document() {
        insta::assert_snapshot!(edit("", Some(Tier::Supervised), Some(NetMode::Allow)), @r#"
        version = 1

        [profile.web]
        tier = "supervised"

        [profile.web.net]
        mode = "allow"
        allow = [
          "host:11434",
          "a.example:443",
          "b.example:22",
        ]
        "#);
    }

    #[test]
    fn comments_groups_and_order_stay_and_a_list_of_its_own_is_added_to() {
        let text = "# mine\nversion = 1\n\n[profile.web.net] # open for now\nmode = \"open\" # soon\n\
                    allow = [\n  \"@npm\", # registries\n  # the last\n]\n\n[group.x]\nallow = []\n";
        insta::assert_snapshot!(edit(text, None, Some(NetMode::Allow)), @r#"
        # mine
        version = 1

        [profile.web.net] # open for now
        mode = "allow" # soon
        allow = [
          "@npm", # registries
          # the last
          "a.example:443",
          "b.example:22",
        ]

        [group.x]
        allow = []
        "#);
    }

    #[test]
    fn tables_in_one_line_are_edited_as_well() {
        let text = "version = 1\nprofile.web = { net = { mode = \"allow\", allow = [\"@x\"] } }\n";
        insta::assert_snapshot!(edit(text, Some(Tier::Supervised), None), @r#"
        version = 1
        profile.web = { net = { mode = "allow", allow = ["@x",
          "a.example:443",
          "b.example:22",
        ] } , tier = "supervised" }
        "#);
    }

    #[test]
    fn what_is_no_table_and_no_list_is_refused() {
        let (none, rules) = (BTreeSet::new(), rules(&["a.example"]));
        let (inherited, rules) = (&none, &rules);
        for text in
            ["profile = 1", "[profile]\nweb = 2", "[profile.web.net]\nallow = 3", "= ", "\u{0}"]
        {
            let (tier, mode) = (None, None);
            let edit = Edit { profile: "web", extends: None, tier, mode, inherited, rules };
            edited(text.as_bytes(), &edit).unwrap_err();
        }
    }
}
