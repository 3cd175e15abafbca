//! Base64 (RFC 4648) as VTK uses it: streams one after the other, each with its padding, and blanks anywhere.

use std::io::{self, BufRead, ErrorKind, Read};

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The bytes as text.
pub(super) fn encode(bytes: &[u8], text: &mut Vec<u8>) {
    for group in bytes.chunks(3) {
        let mut three = [0; 3];
        three[..group.len()].copy_from_slice(group);
        let number = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        for place in 0..4 {
            let letter = LETTERS[(number >> (18 - 6 * place)) as usize & 63];
            text.push(if place > group.len() { b'=' } else { letter });
        }
    }
}

/// Reads the bytes that a text stands for.
pub(super) struct Decoder<R> {
    text: R,
    ready: [u8; 3],
    from: usize,
    to: usize,
}

impl<R: BufRead> Decoder<R> {
    pub(super) fn new(text: R) -> Decoder<R> {
        Decoder { text, ready: [0; 3], from: 0, to: 0 }
    }

    /// The next letter that is not a blank.
    fn letter(&mut self) -> io::Result<Option<u8>> {
        loop {
            let Some(&byte) = self.text.fill_buf()?.first() else { return Ok(None) };
            self.text.consume(1);
            if !byte.is_ascii_whitespace() {
                return Ok(Some(byte));
            }
        }
    }

    /// Four letters are three bytes, fewer where the last letters are padding.
    fn group(&mut self) -> io::Result<bool> {
        let (mut number, mut padding) = (0_u32, 0);
        for place in 0..4 {
            let letter = match self.letter()? {
                Some(letter) => letter,
                None if place == 0 => return Ok(false),
                None => return Err(ErrorKind::UnexpectedEof.into()),
            };
            let value = match letter {
                b'=' if place >= 2 => {
                    padding += 1;
                    0
                }
                _ if padding > 0 => return Err(wrong(letter)),
                letter => value(letter).ok_or_else(|| wrong(letter))?,
            };
            number = number << 6 | value;
        }
        self.ready.copy_from_slice(&number.to_be_bytes()[1..]);
        (self.from, self.to) = (0, 3 - padding);
        Ok(true)
    }
}

fn value(letter: u8) -> Option<u32> {
    let value = match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    };
    Some(value.into())
}

fn wrong(letter: u8) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("the byte {letter:#04x} in base64"))
}

impl<R: BufRead> Read for Decoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            if self.from == self.to && !self.group()? {
                break;
            }
            let count = (self.to - self.from).min(buffer.len() - filled);
            buffer[filled..filled + count].copy_from_slice(&self.ready[self.from..self.from + count]);
            (self.from, filled) = (self.from + count, filled + count);
        }
        Ok(filled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(text: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        Decoder::new(text.as_bytes()).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    #[test]
    fn the_test_vectors_of_the_standard_hold_in_both_directions() {
        for (plain, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            let mut encoded = Vec::new();
            encode(plain.as_bytes(), &mut encoded);
            assert_eq!(encoded, text.as_bytes());
            assert_eq!(decoded(text).unwrap(), plain.as_bytes());
        }
        assert_eq!(decoded("Zm 9v\nYg==Zm9v").unwrap(), b"foobfoo"); // two streams, with blanks
        for damaged in ["Zg=", "Zm9v!===", "=Zg=", "Zg=v"] {
            assert!(decoded(damaged).is_err(), "{damaged}");
        }
    }
}
