//! Wildcards of gitignore(5): `*`, `?`, `[…]`, `**`, on bytes.

/// The most steps of one comparison; a pattern that needs more does not match. Patterns come from
/// the base, which may be somebody else's: this keeps a crafted one from taking the export's time.
const MAX_STEPS: u32 = 100_000;

/// Whether `pattern` matches the whole of `subject`.
pub(super) fn matches(pattern: &[u8], subject: &[u8]) -> bool {
    let mut steps = MAX_STEPS;
    go(pattern, subject, Before::Start, &mut steps)
}

/// What stands before the rest of the pattern; `**` is special only after a slash or the start.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Start,
    Slash,
    Other,
}

fn go(mut pattern: &[u8], mut subject: &[u8], mut before: Before, steps: &mut u32) -> bool {
    loop {
        let Some(left) = steps.checked_sub(1) else { return false };
        *steps = left;
        match pattern {
            [] => return subject.is_empty(),
            [b'*', b'*', b'/', rest @ ..] if before != Before::Other => {
                // Zero or more whole directories.
                let mut tail = subject;
                loop {
                    if go(rest, tail, Before::Slash, steps) {
                        return true;
                    }
                    match tail.iter().position(|&byte| byte == b'/') {
                        Some(slash) => tail = &tail[slash + 1..],
                        None => return false,
                    }
                }
            }
            // `a/**` is everything below `a`, not `a` itself.
            [b'*', b'*'] if before != Before::Other => return !subject.is_empty(),
            [b'*', ..] => {
                let stars = pattern.iter().take_while(|&&byte| byte == b'*').count();
                let rest = &pattern[stars..];
                let end = subject.iter().position(|&byte| byte == b'/').unwrap_or(subject.len());
                return (0..=end).any(|skip| go(rest, &subject[skip..], Before::Other, steps));
            }
            [b'?', rest @ ..] => match subject {
                [b'/', ..] | [] => return false,
                [_, tail @ ..] => (pattern, subject, before) = (rest, tail, Before::Other),
            },
            [b'[', ..] => match (class(pattern, subject), subject) {
                (Some((true, rest)), [_, tail @ ..]) => {
                    (pattern, subject, before) = (rest, tail, Before::Other);
                }
                _ => return false,
            },
            // A backslash that protects nothing matches nothing.
            [b'\\'] => return false,
            [b'\\', literal, rest @ ..] | [literal, rest @ ..] => match subject {
                [first, tail @ ..] if first == literal => {
                    before = if *literal == b'/' { Before::Slash } else { Before::Other };
                    (pattern, subject) = (rest, tail);
                }
                _ => return false,
            },
        }
    }
}

/// Whether the bracket expression at the head of `pattern` holds the first byte of `subject`, and
/// what follows it. `None` when it does not end, which matches nothing.
fn class<'p>(pattern: &'p [u8], subject: &[u8]) -> Option<(bool, &'p [u8])> {
    let mut rest = pattern.get(1..)?;
    let negated = matches!(rest, [b'!' | b'^', ..]);
    if negated {
        rest = &rest[1..];
    }
    let byte = subject.first().copied();
    let mut held = false;
    let mut first = true;
    loop {
        match rest {
            [] => return None,
            [b']', tail @ ..] if !first => {
                // No bracket expression matches a slash.
                let matched = byte.is_some_and(|byte| byte != b'/' && held != negated);
                return Some((matched, tail));
            }
            [b'[', b':', tail @ ..] => {
                let end = tail.windows(2).position(|pair| pair == b":]")?;
                held |= byte.is_some_and(|byte| named(&tail[..end], byte));
                rest = &tail[end + 2..];
            }
            _ => {
                let (low, tail) = literal(rest)?;
                let (high, tail) = match tail {
                    [b'-', b']', ..] => (low, tail),
                    [b'-', tail @ ..] => literal(tail)?,
                    _ => (low, tail),
                };
                held |= byte.is_some_and(|byte| (low..=high).contains(&byte));
                rest = tail;
            }
        }
        first = false;
    }
}

/// One byte of a bracket expression, perhaps after a backslash.
fn literal(rest: &[u8]) -> Option<(u8, &[u8])> {
    match rest {
        [b'\\', byte, tail @ ..] | [byte, tail @ ..] => Some((*byte, tail)),
        [] => None,
    }
}

fn named(name: &[u8], byte: u8) -> bool {
    match name {
        b"alnum" => byte.is_ascii_alphanumeric(),
        b"alpha" => byte.is_ascii_alphabetic(),
        b"blank" => matches!(byte, b' ' | b'\t'),
        b"cntrl" => byte.is_ascii_control(),
        b"digit" => byte.is_ascii_digit(),
        b"graph" => byte.is_ascii_graphic(),
        b"lower" => byte.is_ascii_lowercase(),
        b"print" => byte.is_ascii_graphic() || byte == b' ',
        b"punct" => byte.is_ascii_punctuation(),
        b"space" => byte.is_ascii_whitespace() || byte == 0x0b,
        b"upper" => byte.is_ascii_uppercase(),
        b"xdigit" => byte.is_ascii_hexdigit(),
        _ => false,
    }
}
