//! Machine code, and archives that hold it or may hold it, by their first bytes.

/// What a file's content is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum MachineCode {
    /// ELF.
    Elf,
    /// PE or another kind of `MZ` executable.
    Pe,
    /// Mach-O, thin or fat.
    MachO,
    /// WebAssembly.
    Wasm,
    /// A Java class or Android bytecode.
    Bytecode,
    /// An `ar` archive: a static library or a package.
    ArArchive,
    /// A tar archive with machine code in it.
    TarWithCode,
    /// A compressed archive or stream, which is not unpacked to look.
    Opaque,
}

impl MachineCode {
    /// What to call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Elf => "machine code (ELF)",
            Self::Pe => "machine code (PE)",
            Self::MachO => "machine code (Mach-O)",
            Self::Wasm => "machine code (WebAssembly)",
            Self::Bytecode => "bytecode",
            Self::ArArchive => "an archive of machine code (ar)",
            Self::TarWithCode => "a tar archive with machine code in it",
            Self::Opaque => "a compressed archive, which may hold machine code",
        }
    }
}

const OPAQUE: &[&[u8]] = &[
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"\x1f\x8b",
    b"BZh",
    b"\xfd7zXZ\0",
    b"7z\xbc\xaf\x27\x1c",
    b"\x28\xb5\x2f\xfd",
    b"\x04\x22\x4d\x18",
    b"Rar!\x1a\x07",
    b"MSCF\0\0\0\0",
    b"\xed\xab\xee\xdb",
    b"hsqs",
    b"\x1f\x9d",
    b"LZIP",
    b"xar!",
];

/// Whether `content` is machine code or an archive that holds it or may hold it.
#[must_use]
pub fn machine_code(content: &[u8]) -> Option<MachineCode> {
    if let Some(code) = by_magic(content) {
        return Some(code);
    }
    if OPAQUE.iter().any(|magic| content.starts_with(magic)) {
        return Some(MachineCode::Opaque);
    }
    (is_tar(content) && tar_has_code(content)).then_some(MachineCode::TarWithCode)
}

fn by_magic(content: &[u8]) -> Option<MachineCode> {
    match content {
        [0x7f, b'E', b'L', b'F', ..] => Some(MachineCode::Elf),
        // Text may begin with these two letters; a program has a NUL in its header.
        [b'M', b'Z', rest @ ..] if rest.iter().take(62).any(|&byte| byte == 0) => {
            Some(MachineCode::Pe)
        }
        [0xfe, 0xed, 0xfa, 0xce | 0xcf, ..] | [0xce | 0xcf, 0xfa, 0xed, 0xfe, ..] => {
            Some(MachineCode::MachO)
        }
        // A fat header's count of architectures is small, a class file's version is not.
        [0xca, 0xfe, 0xba, 0xbe | 0xbf, 0, 0, 0, count, ..] if *count < 40 => {
            Some(MachineCode::MachO)
        }
        [0xca, 0xfe, 0xba, 0xbe, ..] | [b'd', b'e', b'x', b'\n', ..] => Some(MachineCode::Bytecode),
        [0, b'a', b's', b'm', ..] => Some(MachineCode::Wasm),
        [b'!', b'<', b'a' | b't', ..]
            if content.starts_with(b"!<arch>\n") || content.starts_with(b"!<thin>\n") =>
        {
            Some(MachineCode::ArArchive)
        }
        _ => None,
    }
}

const BLOCK: usize = 512;

fn is_tar(content: &[u8]) -> bool {
    content.get(257..262) == Some(b"ustar")
}

/// Looks at the first bytes of every member. What is damaged counts as code.
fn tar_has_code(content: &[u8]) -> bool {
    let mut rest = content;
    loop {
        let Some((header, data)) = rest.split_at_checked(BLOCK) else { return !rest.is_empty() };
        if header.iter().all(|&byte| byte == 0) {
            return data.iter().any(|&byte| byte != 0);
        }
        let digits = header[124..136].iter().take_while(|byte| matches!(byte, b'0'..=b'7'));
        let size = digits.fold(0_usize, |sum, digit| {
            sum.saturating_mul(8).saturating_add(usize::from(digit - b'0'))
        });
        // Sizes in base 256 are for members of 8 GiB and more.
        let Some((member, _)) = data.split_at_checked(size).filter(|_| header[124] < 0x80) else {
            return true;
        };
        if by_magic(member).is_some() || OPAQUE.iter().any(|magic| member.starts_with(magic)) {
            return true;
        }
        rest = data.get(size.next_multiple_of(BLOCK)..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::{MachineCode, machine_code};

    fn tar(member: &[u8]) -> Vec<u8> {
        let mut header = vec![0; 512];
        header[..1].copy_from_slice(b"m");
        header[124..135].copy_from_slice(format!("{:011o}", member.len()).as_bytes());
        header[257..262].copy_from_slice(b"ustar");
        let mut archive = [header, member.to_vec()].concat();
        archive.resize(archive.len().next_multiple_of(512) + 1024, 0);
        archive
    }

    #[test]
    fn programs_and_archives_are_known_by_their_first_bytes() {
        let own = std::fs::read("/proc/self/exe").expect("the test itself");
        assert_eq!(machine_code(&own), Some(MachineCode::Elf));
        assert_eq!(machine_code(b"MZ\x90\0\x03"), Some(MachineCode::Pe));
        assert_eq!(machine_code(b"\xcf\xfa\xed\xfe\x07"), Some(MachineCode::MachO));
        assert_eq!(machine_code(b"\xca\xfe\xba\xbe\0\0\0\x02"), Some(MachineCode::MachO));
        assert_eq!(machine_code(b"\xca\xfe\xba\xbe\0\0\0\x34"), Some(MachineCode::Bytecode));
        assert_eq!(machine_code(b"\0asm\x01"), Some(MachineCode::Wasm));
        assert_eq!(machine_code(b"!<arch>\nx"), Some(MachineCode::ArArchive));
        assert_eq!(machine_code(b"PK\x03\x04.."), Some(MachineCode::Opaque));
        assert_eq!(machine_code(&tar(b"\x7fELF")), Some(MachineCode::TarWithCode));
    }

    #[test]
    fn text_images_and_tar_of_text_are_not() {
        for content in
            [&b"MZ is how this text begins"[..], b"", b"#!/bin/sh\n", b"\x89PNG\r\n\x1a\n", b"BZ"]
        {
            assert_eq!(machine_code(content), None);
        }
        assert_eq!(machine_code(&tar(b"hello")), None);
    }
}
