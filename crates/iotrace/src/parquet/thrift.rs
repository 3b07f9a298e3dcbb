//! The compact protocol of Thrift, in which Parquet describes files and pages.
//!
//! [`Fields`] appends a structure, [`Reader`] reads one field by field and skips fields that it is not asked for. Bytes of a file are not
//! trusted: a length is compared with what is left before it is used, and nested values that are skipped have a limit.
//!
//! Limits: no maps, sets and doubles are written; no field has a negative number, and none follows one of a higher number.
//!
//! Source: Apache Thrift, `doc/specs/thrift-compact-protocol.md`.

/// The types of the protocol that are used here.
pub(super) const I32: u8 = 5;
pub(super) const I64: u8 = 6;
pub(super) const BINARY: u8 = 8;
pub(super) const LIST: u8 = 9;
pub(super) const STRUCT: u8 = 12;

/// Structures and lists within each other that are skipped. Those of Parquet are at most five deep.
const DEPTH_MAX: u32 = 16;

/// Appends a number in groups of seven bits, the least significant first (ULEB128).
pub(crate) fn append_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends a signed number as a varint: 0, -1, 1, -2, … become 0, 1, 2, 3, ….
pub(crate) fn append_zigzag(out: &mut Vec<u8>, number: i64) {
    append_varint(out, ((number << 1) ^ (number >> 63)) as u64);
}

/// The fields of a structure that is appended to bytes, in ascending order of their numbers.
pub(super) struct Fields<'a> {
    out: &'a mut Vec<u8>,
    last: u8,
}

/// Appends a structure.
pub(super) fn append_struct(out: &mut Vec<u8>, fields: impl FnOnce(&mut Fields<'_>)) {
    fields(&mut Fields { out, last: 0 });
    out.push(0);
}

impl Fields<'_> {
    fn begin(&mut self, number: u8, kind: u8) {
        let step = number - self.last;
        assert!((1..=15).contains(&step), "field {number} after {}", self.last);
        self.out.push(step << 4 | kind);
        self.last = number;
    }

    pub(super) fn i32(&mut self, number: u8, value: i32) {
        self.begin(number, I32);
        append_zigzag(self.out, i64::from(value));
    }

    pub(super) fn i64(&mut self, number: u8, value: i64) {
        self.begin(number, I64);
        append_zigzag(self.out, value);
    }

    pub(super) fn text(&mut self, number: u8, text: &str) {
        self.begin(number, BINARY);
        append_text(self.out, text);
    }

    pub(super) fn structure(&mut self, number: u8, fields: impl FnOnce(&mut Fields<'_>)) {
        self.begin(number, STRUCT);
        append_struct(self.out, fields);
    }

    /// Appends the head of a list; its `count` elements are what the caller appends to the bytes that are returned.
    pub(super) fn list(&mut self, number: u8, kind: u8, count: usize) -> &mut Vec<u8> {
        self.begin(number, LIST);
        if count < 15 {
            self.out.push((count as u8) << 4 | kind);
        } else {
            self.out.push(0xf0 | kind);
            append_varint(self.out, count as u64);
        }
        self.out
    }
}

/// Appends an element of a list of texts.
pub(super) fn append_text(out: &mut Vec<u8>, text: &str) {
    append_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Bytes that are not what they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Damaged;

/// What is left to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn byte(&mut self) -> Result<u8, Damaged> {
        let (byte, rest) = self.0.split_first().ok_or(Damaged)?;
        self.0 = rest;
        Ok(*byte)
    }

    /// Reads the next `count` bytes.
    pub(crate) fn bytes(&mut self, count: u64) -> Result<&'a [u8], Damaged> {
        let count = usize::try_from(count).map_err(|_| Damaged)?;
        let (bytes, rest) = self.0.split_at_checked(count).ok_or(Damaged)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// Reads what [`append_varint`] appends. Bits beyond 64 are damage.
    pub(crate) fn varint(&mut self) -> Result<u64, Damaged> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                return Err(Damaged);
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(Damaged)
    }

    /// Reads what [`append_zigzag`] appends.
    pub(crate) fn zigzag(&mut self) -> Result<i64, Damaged> {
        let number = self.varint()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    pub(super) fn i32(&mut self) -> Result<i32, Damaged> {
        i32::try_from(self.zigzag()?).map_err(|_| Damaged)
    }

    /// Reads a number that is not negative.
    pub(super) fn size(&mut self) -> Result<u64, Damaged> {
        u64::try_from(self.zigzag()?).map_err(|_| Damaged)
    }

    pub(super) fn binary(&mut self) -> Result<&'a [u8], Damaged> {
        let length = self.varint()?;
        self.bytes(length)
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Damaged> {
        std::str::from_utf8(self.binary()?).map_err(|_| Damaged)
    }

    /// Reads the head of the next field of a structure: its number, which is also put into `last`, and its type. `None`: the structure
    /// ends. `last` is 0 before the first field.
    pub(super) fn field(&mut self, last: &mut i64) -> Result<Option<(i64, u8)>, Damaged> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        *last = match head >> 4 {
            0 => i64::from(i16::try_from(self.zigzag()?).map_err(|_| Damaged)?),
            step => *last + i64::from(step),
        };
        Ok(Some((*last, head & 15)))
    }

    /// Reads the head of a list: the type of its elements, and how many there are. Each takes at least a byte.
    pub(super) fn list(&mut self) -> Result<(u8, u64), Damaged> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            count => u64::from(count),
        };
        if count > self.0.len() as u64 {
            return Err(Damaged);
        }
        Ok((head & 15, count))
    }

    /// Reads the head of a list of structures, and returns how many there are.
    pub(super) fn structures(&mut self) -> Result<u64, Damaged> {
        match self.list()? {
            (STRUCT, count) | (_, count @ 0) => Ok(count),
            _ => Err(Damaged),
        }
    }

    /// Skips the value of a field.
    pub(super) fn skip(&mut self, kind: u8) -> Result<(), Damaged> {
        match kind {
            // A truth value is in its type.
            1 | 2 => Ok(()),
            kind => self.skip_value(kind, DEPTH_MAX),
        }
    }

    fn skip_value(&mut self, kind: u8, depth: u32) -> Result<(), Damaged> {
        let depth = depth.checked_sub(1).ok_or(Damaged)?;
        match kind {
            // Truth values (here: elements of a list) and bytes.
            1..=3 => self.byte().map(drop),
            4..=6 => self.varint().map(drop),
            7 => self.bytes(8).map(drop),
            BINARY => self.binary().map(drop),
            // Sets are as lists.
            LIST | 10 => {
                let (kind, count) = self.list()?;
                (0..count).try_for_each(|_| self.skip_value(kind, depth))
            }
            STRUCT => {
                let mut last = 0;
                while let Some((_, kind)) = self.field(&mut last)? {
                    if !matches!(kind, 1 | 2) {
                        self.skip_value(kind, depth)?;
                    }
                }
                Ok(())
            }
            // Parquet has no maps.
            _ => Err(Damaged),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: numbers take the bytes of the specification, and are read back. Method: its examples, and the extremes.
    #[test]
    fn numbers_are_written_as_the_specification_demands_and_read_back() {
        let mut out = Vec::new();
        append_varint(&mut out, 50_399);
        assert_eq!(out, [0xdf, 0x89, 0x03]);
        for (number, bytes) in [(0, 0), (-1, 1), (1, 2), (-2, 3), (2, 4)] {
            out.clear();
            append_zigzag(&mut out, number);
            assert_eq!(out, [bytes]);
        }
        for number in [0, 1, -1, 63, 64, i64::MAX, i64::MIN, i64::from(i32::MIN)] {
            out.clear();
            append_zigzag(&mut out, number);
            assert_eq!(Reader(&out).zigzag(), Ok(number));
        }
        // 65 bits, and a number without an end.
        assert_eq!(Reader(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).varint(), Err(Damaged));
        assert_eq!(Reader(&[0x80; 10]).varint(), Err(Damaged));
        assert_eq!(Reader(&[0x80]).varint(), Err(Damaged));
    }

    /// Goal: fields of any type, also unknown ones, are skipped, and the next one is read.
    #[test]
    fn a_structure_is_read_field_by_field_and_unknown_fields_are_skipped() {
        let mut out = Vec::new();
        append_struct(&mut out, |fields| {
            fields.i32(1, -7);
            fields.text(2, "a name");
            let list = fields.list(4, BINARY, 20);
            (0..20).for_each(|_| append_text(list, "x"));
            fields.structure(5, |fields| fields.structure(1, |fields| fields.i64(15, 1)));
            fields.i64(20, i64::MAX);
        });
        let mut reader = Reader(&out);
        let (mut last, mut seen) = (0, Vec::new());
        while let Some((number, kind)) = reader.field(&mut last).expect("a field") {
            match number {
                20 => assert_eq!(reader.size(), Ok(i64::MAX as u64)),
                _ => reader.skip(kind).expect("a value"),
            }
            seen.push(number);
        }
        assert_eq!((seen, reader.0.len()), (vec![1, 2, 4, 5, 20], 0));
        // A truth value, a field whose number is written out, a double and a set.
        let mut reader = Reader(&[0x11, 0x05, 0xc8, 0x01, 2, 0x17, 0, 0, 0, 0, 0, 0, 0, 0, 0x1a, 0x21, 1, 2, 0]);
        let (mut last, mut seen) = (0, Vec::new());
        while let Some((number, kind)) = reader.field(&mut last).expect("a field") {
            reader.skip(kind).expect("a value");
            seen.push((number, kind));
        }
        assert_eq!((seen, reader.0.len()), (vec![(1, 1), (100, I32), (101, 7), (102, 10)], 0));
    }

    /// Goal: what is nested without an end, or longer than what is there, is refused and takes neither the stack nor memory.
    #[test]
    fn forged_lengths_and_depths_are_damage() {
        assert_eq!(Reader(&[0x1c; 100_000]).skip(STRUCT), Err(Damaged));
        assert_eq!(Reader(&[0x19; 100_000]).skip(LIST), Err(Damaged));
        assert_eq!(Reader(&[0xfc, 0xff, 0xff, 0xff, 0xff, 0x0f, 0]).structures(), Err(Damaged));
        assert_eq!(Reader(&[0xff, 0xff, 0xff, 0xff, 0x0f, 0]).binary(), Err(Damaged));
        assert_eq!(Reader(&[0x1b, 0]).skip(11), Err(Damaged));
        // Integers where structures should be.
        assert_eq!(Reader(&[0x15, 0]).structures(), Err(Damaged));
    }
}
