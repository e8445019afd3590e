//! Owns base64, for the few reads on a tape that are no UTF-8. It must not know tapes.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().enumerate().fold(0_u32, |word, (i, byte)| word | (u32::from(*byte) << (16 - 8 * i)));
        for i in 0..4 {
            let letter = LETTERS.get(((word >> (18 - 6 * i)) & 63) as usize).copied().unwrap_or(b'=');
            text.push(if i <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    if text.len() % 4 != 0 {
        return None;
    }
    let letters = text.trim_end_matches('=');
    if text.len() - letters.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(letters.len() * 3 / 4);
    let (mut word, mut bits) = (0_u32, 0);
    for letter in letters.bytes() {
        let value = LETTERS.iter().position(|l| *l == letter).and_then(|at| u32::try_from(at).ok())?;
        (word, bits) = ((word << 6) | value, bits + 6);
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from((word >> bits) & 0xff).ok()?);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_encoded_is_decoded() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            assert_eq!((&*encode(bytes.as_bytes()), decode(text).as_deref()), (text, Some(bytes.as_bytes())));
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)), Some(all));
        for bad in ["a", "Zg=", "Z===", "Zg==Zg==", "Z\u{e9}g", "Zm9\n"] {
            assert_eq!(decode(bad), None, "{bad:?}");
        }
    }
}
