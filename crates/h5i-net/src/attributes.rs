//! Netlink attributes, nested to any depth.

use netlink_packet_core::{NLA_F_NESTED, NlaBuffer, NlasIterator};

/// A list of attributes in the kernel's encoding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attributes(Vec<u8>);

/// Length of an attribute's own header.
const HEADER: usize = 4;
/// Type of the elements of a list (`NFTA_LIST_ELEM`).
const ELEMENT: u16 = 1;

impl Attributes {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn bytes(mut self, kind: u16, value: &[u8]) -> Self {
        // By hand: a gate has thousands of them, and the library's type owns a copy of its value.
        let length = u16::try_from(HEADER + value.len()).unwrap_or(u16::MAX);
        self.0.extend_from_slice(&length.to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    /// A number in network byte order, as nftables has them.
    pub(crate) fn be32(self, kind: u16, value: u32) -> Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    pub(crate) fn be64(self, kind: u16, value: u64) -> Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    pub(crate) fn text(self, kind: u16, value: &str) -> Self {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.bytes(kind, &bytes)
    }

    pub(crate) fn nest(self, kind: u16, inner: &Self) -> Self {
        self.bytes(kind | NLA_F_NESTED, &inner.0)
    }

    /// A nested list.
    pub(crate) fn list(self, kind: u16, elements: impl IntoIterator<Item = Self>) -> Self {
        let inner = elements.into_iter().fold(Self::new(), |list, one| list.nest(ELEMENT, &one));
        self.nest(kind, &inner)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The attributes of `bytes`, up to the first one that is cut: type and value.
pub(crate) fn parse(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    NlasIterator::new(bytes).map_while(Result::ok).map(|one: NlaBuffer<&[u8]>| {
        let (kind, length) = (one.kind(), usize::from(one.length()));
        (kind, one.into_inner().get(4..length).unwrap_or_default())
    })
}

/// The value of the first attribute of type `kind`.
pub(crate) fn find(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    parse(bytes).find(|(found, _)| *found == kind).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_nested_is_found_again() {
        let inner = Attributes::new().be32(3, 7).text(4, "lo");
        let outer = Attributes::new().bytes(1, &[9]).list(2, [inner.clone(), inner]);
        assert_eq!(find(outer.as_bytes(), 1), Some(&[9][..]));
        let list = find(outer.as_bytes(), 2).unwrap();
        let elements: Vec<_> = parse(list).collect();
        assert_eq!(elements.len(), 2);
        for (_, element) in elements {
            assert_eq!(find(element, 3), Some(&[0, 0, 0, 7][..]));
            assert_eq!(find(element, 4), Some(&b"lo\0"[..]));
        }
        assert_eq!(parse(&[9, 0, 1, 0, 1]).count(), 0);
    }
}
