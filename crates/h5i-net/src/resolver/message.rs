//! Questions and answers in the DNS's encoding (RFC 1035, RFC 6891).

use std::net::IpAddr;

use h5i_policy::HostName;
use hickory_proto::op::{Edns, Message, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA};
use hickory_proto::rr::{DNSClass, RData, Record, RecordType};

/// Addresses in one answer: so many of IPv6 fit the 512 bytes that every client takes.
const TOLD: usize = 8;
/// Length of a message's header.
const HEADER: usize = 12;
/// What the resolver takes over UDP, as told to clients that ask (RFC 6891).
const PAYLOAD: u16 = 1232;

/// What a packet from the box is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Packet {
    /// Nothing that an answer could be given to.
    Noise,
    /// Something that is answered without a look at any name.
    Answered(Vec<u8>),
    Question(Question),
}

/// A question for the addresses of a name, or for something else of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Question {
    id: u16,
    query: Query,
    recursion_desired: bool,
    extended: bool,
    /// The name; where it is none of a host, what stood in its place, printable.
    pub(crate) name: Result<HostName, String>,
}

/// What is said to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Say<'a> {
    /// These addresses, those of the family that was asked for, for so many seconds.
    Addresses(&'a [IpAddr], u32),
    Refused,
    Failed,
}

impl Question {
    /// The type of record by its number.
    pub(crate) fn record(&self) -> u16 {
        self.query.query_type().into()
    }

    /// The answer in the DNS's encoding.
    pub(crate) fn answer(&self, say: Say<'_>) -> Vec<u8> {
        let mut message = Message::response(self.id, OpCode::Query);
        message.metadata.recursion_desired = self.recursion_desired;
        message.metadata.recursion_available = true;
        message.add_query(self.query.clone());
        if self.extended {
            let mut edns = Edns::new();
            edns.set_max_payload(PAYLOAD);
            message.set_edns(edns);
        }
        match say {
            Say::Refused => message.metadata.response_code = ResponseCode::Refused,
            Say::Failed => message.metadata.response_code = ResponseCode::ServFail,
            Say::Addresses(addresses, seconds) => {
                let record = |data| Record::from_rdata(self.query.name().clone(), seconds, data);
                let wanted = self.query.query_type();
                let data = addresses.iter().filter_map(|address| match (wanted, address) {
                    (RecordType::A, IpAddr::V4(v4)) => Some(RData::A(A(*v4))),
                    (RecordType::AAAA, IpAddr::V6(v6)) => Some(RData::AAAA(AAAA(*v6))),
                    _ => None,
                });
                message.add_answers(data.take(TOLD).map(record));
            }
        }
        // What was read can be written; were it not so, silence would be answered by a time-out.
        message.to_vec().unwrap_or_else(|_| bare(self.id, ResponseCode::ServFail))
    }
}

/// Reads what the box sent. Only plain questions are looked at: one name, no records, and at most
/// what an extension needs (RFC 6891, a cookie, a signature).
pub(crate) fn read(bytes: &[u8]) -> Packet {
    let Some(header) = bytes.first_chunk::<HEADER>() else { return Packet::Noise };
    let count = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let id = count(0);
    if header[2] & 0x80 != 0 {
        return Packet::Noise;
    }
    if header[2] & 0x78 != 0 {
        return Packet::Answered(bare(id, ResponseCode::NotImp));
    }
    let counts = [count(4), count(6), count(8), count(10)];
    if counts[..3] != [1, 0, 0] || counts[3] > 2 {
        return Packet::Answered(bare(id, ResponseCode::FormErr));
    }
    let Ok(message) = Message::from_vec(bytes) else {
        return Packet::Answered(bare(id, ResponseCode::FormErr));
    };
    let [query] = message.queries.as_slice() else {
        return Packet::Answered(bare(id, ResponseCode::FormErr));
    };
    if query.query_class() != DNSClass::IN {
        return Packet::Answered(bare(id, ResponseCode::Refused));
    }
    let text = query.name().to_ascii();
    let name = HostName::new(&text).map_err(|_e| printable(&text));
    Packet::Question(Question {
        id,
        recursion_desired: message.metadata.recursion_desired,
        extended: message.edns.is_some(),
        query: query.clone(),
        name,
    })
}

/// An answer without its question.
fn bare(id: u16, code: ResponseCode) -> Vec<u8> {
    let [high, low] = id.to_be_bytes();
    vec![high, low, 0x80, code.low(), 0, 0, 0, 0, 0, 0, 0, 0]
}

fn printable(text: &str) -> String {
    text.chars().take(255).map(|c| if c.is_ascii_graphic() { c } else { '?' }).collect()
}

#[cfg(test)]
mod tests {
    use hickory_proto::rr::Name;
    use proptest::prelude::*;

    use super::*;

    fn ask(name: &str, record: RecordType) -> Vec<u8> {
        let mut message = Message::new(7, hickory_proto::op::MessageType::Query, OpCode::Query);
        message.metadata.recursion_desired = true;
        message.add_query(Query::query(Name::from_ascii(name).unwrap(), record));
        message.to_vec().unwrap()
    }

    fn question(name: &str, record: RecordType) -> Question {
        match read(&ask(name, record)) {
            Packet::Question(question) => question,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_name_is_read_in_its_canonical_form() {
        let asked = question("API.Example.COM.", RecordType::A);
        assert_eq!(asked.name.map(|name| name.to_string()), Ok("api.example.com".to_owned()));
        assert_eq!(question("_x.example.", RecordType::TXT).name, Err("_x.example.".to_owned()));
    }

    #[test]
    fn an_answer_has_the_question_and_addresses_of_its_family_only() {
        let addresses: Vec<IpAddr> = (1..=20)
            .flat_map(|n| [[8, 8, 8, n].into(), [0x2600, 0, 0, 0, 0, 0, 0, u16::from(n)].into()])
            .collect();
        for (record, width) in [(RecordType::A, 16), (RecordType::AAAA, 28)] {
            let name = format!("{}.{}.example", "a".repeat(60), "b".repeat(60));
            let asked = question(&name, record);
            let bytes = asked.answer(Say::Addresses(&addresses, 30));
            let answer = Message::from_vec(&bytes).unwrap();
            assert_eq!((answer.metadata.id, answer.queries.len(), answer.answers.len()), (7, 1, 8));
            assert!(answer.answers.iter().all(|r| r.ttl == 30 && r.record_type() == record));
            assert!(bytes.len() <= 512, "{} {width}", bytes.len());
        }
        let none = question("a.example.", RecordType::MX).answer(Say::Addresses(&addresses, 30));
        assert_eq!(Message::from_vec(&none).unwrap().answers.len(), 0);
        let refused = question("a.example.", RecordType::A).answer(Say::Refused);
        let refused = Message::from_vec(&refused).unwrap();
        assert_eq!(refused.metadata.response_code, ResponseCode::Refused);
    }

    #[test]
    fn hostile_packets_get_a_short_answer_or_none() {
        let plain = ask("a.example.", RecordType::A);
        let with = |at: usize, value: u8| {
            let mut bytes = plain.clone();
            bytes[at] = value;
            bytes
        };
        assert_eq!(read(&plain[..11]), Packet::Noise);
        assert_eq!(read(&with(2, 0x80)), Packet::Noise);
        let code = |bytes: &[u8]| match read(bytes) {
            Packet::Answered(answer) => answer[3],
            other => panic!("{other:?}"),
        };
        assert_eq!(code(&with(2, 0x28)), 4);
        assert_eq!(code(&with(5, 2)), 1);
        assert_eq!(code(&with(7, 1)), 1);
        assert_eq!(code(&with(11, 200)), 1);
        assert_eq!(code(&plain[..20]), 1);
        // A name that points at itself.
        let mut pointing = plain[..12].to_vec();
        pointing.extend([0xc0, 12, 0, 1, 0, 1]);
        assert_eq!(code(&pointing), 1);
        let mut long = plain[..12].to_vec();
        for _ in 0..1000 {
            long.push(63);
            long.extend([b'a'; 63]);
        }
        long.extend([0, 0, 1, 0, 1]);
        assert_eq!(code(&long), 1);
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_much(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = read(&bytes);
            let mut framed = vec![0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
            framed.extend(bytes);
            if let Packet::Question(question) = read(&framed) {
                prop_assert!(question.answer(Say::Refused).len() < 600);
            }
        }
    }
}
