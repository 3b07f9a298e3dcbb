//! A kernel module of our own making: an ELF file with nothing in it but a table of USB devices.

/// A module of our own making: one section, one symbol, entries of (match, vendor, product, low,
/// high, flags).
pub(crate) fn module(entries: &[(u16, u16, u16, u16, u16, u64)], symbol: &str, is_64: bool) -> Vec<u8> {
    let mut data = Vec::new();
    for (match_flags, vendor, product, low, high, flags) in entries.iter().chain([&(0, 0, 0, 0, 0, 0)]) {
        for half in [match_flags, vendor, product, low, high] {
            data.extend(half.to_le_bytes());
        }
        data.extend(if is_64 { vec![0; 14] } else { vec![0; 10] });
        let flags = flags.to_le_bytes();
        data.extend(if is_64 { &flags[..] } else { &flags[..4] });
    }
    elf(&data, symbol, is_64)
}

/// Header, data, string table, symbol table, four section headers.
fn elf(data: &[u8], symbol: &str, is_64: bool) -> Vec<u8> {
    let strings = [b"\0".as_slice(), symbol.as_bytes(), b"\0"].concat();
    let (header, section, entry) = if is_64 { (64, 64, 24) } else { (52, 40, 16) };
    let word = |value: usize| {
        let bytes = (value as u64).to_le_bytes();
        if is_64 { bytes.to_vec() } else { bytes[..4].to_vec() }
    };
    let half = |value: u16| value.to_le_bytes().to_vec();
    let long = |value: u32| value.to_le_bytes().to_vec();
    let strings_at = header + data.len();
    let symbols_at = strings_at + strings.len();
    let sections_at = symbols_at + 2 * entry;
    let mut file = vec![0x7f, b'E', b'L', b'F', if is_64 { 2 } else { 1 }, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    file.extend([half(1), half(62), long(1), word(0), word(0), word(sections_at), long(0)].concat());
    file.extend([half(header as u16), half(0), half(0), half(section as u16), half(4), half(2)].concat());
    file.extend(data);
    file.extend(&strings);
    file.extend(vec![0; entry]);
    // STT_OBJECT, STB_LOCAL, in section 1.
    if is_64 {
        file.extend([long(1), vec![1, 0], half(1), word(0), word(data.len())].concat());
    } else {
        file.extend([long(1), word(0), word(data.len()), vec![1, 0], half(1)].concat());
    }
    let mut sections = |kind: u32, at: usize, size: usize, link: u32, info: u32, entry: usize| {
        let parts = [long(0), long(kind), word(0), word(0), word(at), word(size), long(link), long(info), word(1)];
        file.extend([parts.concat(), word(entry)].concat());
    };
    sections(0, 0, 0, 0, 0, 0);
    sections(1, header, data.len(), 0, 0, 0);
    sections(3, strings_at, strings.len(), 0, 0, 0);
    sections(2, symbols_at, 2 * entry, 2, 2, entry);
    file
}
