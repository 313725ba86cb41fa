//! Names in one line of text, so that a shell reads them back.

/// A name or path as it is shown: as it is if it is plain text, otherwise in the quotes of a shell
/// (`$'...'`, of bash, zsh and POSIX.1-2024) that stand for its bytes. `caf\xe9` becomes
/// `$'caf\351'`.
pub fn shown(name: &[u8]) -> String {
    match std::str::from_utf8(name) {
        Ok(text) if !text.is_empty() && text.chars().all(is_plain) => text.to_string(),
        _ => format!("$'{}'", escaped(name)),
    }
}

/// Quotes and backslashes are not plain: what they say must not depend on whether they were read by
/// a shell.
fn is_plain(c: char) -> bool {
    c == ' ' || c.escape_debug().len() == 1
}

fn escaped(name: &[u8]) -> String {
    let mut out = String::new();
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\'' | '\\' => out.extend(['\\', c]),
                '"' => out.push(c),
                c if is_plain(c) => out.push(c),
                c => octal(c.encode_utf8(&mut [0; 4]).as_bytes(), &mut out),
            }
        }
        octal(chunk.invalid(), &mut out);
    }
    out
}

/// Three digits each: with fewer, a digit that follows would belong to them.
fn octal(bytes: &[u8], out: &mut String) {
    out.extend(bytes.iter().map(|byte| format!("\\{byte:03o}")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_stay_as_they_are() {
        for name in ["a", "a file", "Füße", "日本", "-x", "a:b$c*"] {
            assert_eq!(shown(name.as_bytes()), name);
        }
    }

    #[test]
    fn a_shell_reads_every_name_back() {
        let names: [&[u8]; 10] = [
            b"caf\xe9",
            b"\x1b[31m1",
            b"a'b\"c\\d",
            b"",
            b"\n\t7",
            b"$'a'",
            "a\u{202e}b".as_bytes(),
            b"\xff\xfe\xe2\x82",
            b"\\x41",
            b"..\x2f\x01",
        ];
        for name in names {
            let text = shown(name);
            assert!(
                text.starts_with("$'")
                    && text.chars().all(|c| c.escape_debug().len() == 1 || "'\\\"".contains(c))
            );
            let run = std::process::Command::new("bash")
                .args(["-c", &format!("printf %s {text}")])
                .output()
                .expect("bash is there");
            assert_eq!(run.stdout, name, "{text}");
        }
    }
}
