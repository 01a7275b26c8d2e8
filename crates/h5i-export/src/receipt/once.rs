//! Whether every key of a JSON text is once in its object.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Reads a text and keeps nothing of it but the keys of the objects that are open.
///
/// Readers differ in which of two equal keys they take, so a text that has them says two things.
///
/// # Errors
/// The text is not JSON, or a key is there twice in one object, at any depth.
pub(super) fn each_key_once(text: &[u8]) -> Result<(), serde_json::Error> {
    serde_json::from_slice::<Walked>(text).map(drop)
}

/// A value that was walked through.
struct Walked;

impl<'de> Deserialize<'de> for Walked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Walked {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self, A::Error> {
        let mut keys = BTreeSet::new();
        while let Some(key) = fields.next_key::<String>()? {
            if !keys.insert(key) {
                return Err(A::Error::custom("a key is there twice"));
            }
            fields.next_value::<Self>()?;
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::each_key_once;

    #[test]
    fn a_key_twice_in_one_object_is_found_at_any_depth() {
        for good in [
            r#"{"a":1,"b":{"a":-1,"c":[{"a":1.5},{"a":null},{"A":"a"}]}}"#,
            "[]",
            r#"["a","a",true,true]"#,
        ] {
            each_key_once(good.as_bytes()).expect(good);
        }
        for twice in [
            r#"{"a":1,"a":1}"#,
            r#"{"a":1,"b":2,"\u0061":3}"#,
            r#"{"b":{"a":1,"a":1}}"#,
            r#"[[{"b":[{"a":{},"a":{}}]}]]"#,
        ] {
            let error = each_key_once(twice.as_bytes()).expect_err(twice).to_string();
            assert!(error.contains("a key is there twice"), "{error}");
        }
    }
}
