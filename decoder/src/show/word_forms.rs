//! How arguments and results of calls are shown: as declarations say, such as `seek@arg1/i32,arg2/i64,result/i64`.
//!
//! A record holds words of 64 bits as they were in registers. What a function's type makes of them, only its source
//! says.

use ringmark_format::glob::matches as glob;

use crate::events::filter_error::FilterError;
use crate::trace_file::function_words::FunctionWords;

const SHAPE: &str = "FUNCTION@arg1/FORM,result/FORM, such as seek@arg1/i32,result/i64";
const WORD: &str = "arg1, arg2 and so on, or result";
const FORM: &str = "i8, i16, i32, i64, u8, u16, u32, u64, x64, bool or char";

/// What a word of a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    /// An argument, counted from 0.
    Argument(usize),
    Result,
}

/// How a word is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// The low bits as a signed number.
    Signed(u32),
    Unsigned(u32),
    Hexadecimal,
    Bool,
    Char,
}

/// A declaration: which functions it is of, and the form of their words.
#[derive(Debug, Clone)]
struct Declared {
    pattern: String,
    words: Vec<(Word, Form)>,
}

/// The declarations; a function has the first that its name matches.
#[derive(Debug, Clone, Default)]
pub struct WordForms {
    all: Vec<Declared>,
}

impl WordForms {
    /// Adds `FUNCTION@WORD/FORM,…`; FUNCTION may have `*` and `?`.
    ///
    /// # Errors
    /// The text is none.
    pub fn declare(&mut self, text: &str) -> Result<(), FilterError> {
        let wrong = |at: usize, expected| FilterError {
            what: "declaration",
            text: text.to_owned(),
            at: Some(at),
            expected,
        };
        let split = text.rsplit_once('@').filter(|(name, _)| !name.is_empty());
        let (pattern, list) = split.ok_or_else(|| wrong(text.len(), SHAPE))?;
        let mut at = pattern.len() + 1;
        let mut words = Vec::new();
        for part in list.split(',') {
            let (word, form) = part.split_once('/').ok_or_else(|| wrong(at, SHAPE))?;
            let known = word_called(word).ok_or_else(|| wrong(at, WORD))?;
            let in_form = form_called(form);
            words.push((
                known,
                in_form.ok_or_else(|| wrong(at + word.len() + 1, FORM))?,
            ));
            at += part.len() + 1;
        }
        self.all.push(Declared {
            pattern: pattern.to_owned(),
            words,
        });
        Ok(())
    }

    /// Appends the arguments of a call of a function, in parentheses; nothing if it has none.
    pub(crate) fn arguments(&self, function: &[u8], words: &FunctionWords<'_>, out: &mut Vec<u8>) {
        let declared = self.of(function);
        let most = declared.map_or(usize::MAX, arguments_of);
        for (place, word) in words.arguments().take(most).enumerate() {
            out.extend_from_slice(if place == 0 { b"(" } else { b", " });
            write(word, form_of(declared, Word::Argument(place)), out);
        }
        if most > 0 && words.arguments().next().is_some() {
            out.push(b')');
        }
    }

    /// Appends the result of a call of a function.
    pub(crate) fn result(&self, function: &[u8], word: u64, out: &mut Vec<u8>) {
        write(word, form_of(self.of(function), Word::Result), out);
    }

    fn of(&self, function: &[u8]) -> Option<&Declared> {
        let mut all = self.all.iter();
        all.find(|declared| glob(declared.pattern.as_bytes(), function))
    }
}

/// How many arguments a function has, as declared.
fn arguments_of(declared: &Declared) -> usize {
    let number = |(word, _): &(Word, Form)| match word {
        Word::Argument(place) => place + 1,
        Word::Result => 0,
    };
    declared.words.iter().map(number).max().unwrap_or(0)
}

fn form_of(declared: Option<&Declared>, word: Word) -> Form {
    let mut words = declared.iter().flat_map(|declared| &declared.words);
    let found = words.find(|(of, _)| *of == word);
    found.map_or(Form::Hexadecimal, |(_, form)| *form)
}

fn word_called(text: &str) -> Option<Word> {
    if text == "result" {
        return Some(Word::Result);
    }
    let number: usize = text.strip_prefix("arg")?.parse().ok()?;
    Some(Word::Argument(number.checked_sub(1)?))
}

fn form_called(text: &str) -> Option<Form> {
    Some(match text {
        "i8" => Form::Signed(8),
        "i16" => Form::Signed(16),
        "i32" => Form::Signed(32),
        "i64" => Form::Signed(64),
        "u8" => Form::Unsigned(8),
        "u16" => Form::Unsigned(16),
        "u32" => Form::Unsigned(32),
        "u64" => Form::Unsigned(64),
        "x64" => Form::Hexadecimal,
        "bool" => Form::Bool,
        "char" => Form::Char,
        _ => return None,
    })
}

fn write(word: u64, form: Form, out: &mut Vec<u8>) {
    let text = match form {
        Form::Signed(bits) => ((word << (64 - bits)) as i64 >> (64 - bits)).to_string(),
        Form::Unsigned(bits) => (word << (64 - bits) >> (64 - bits)).to_string(),
        Form::Hexadecimal => format!("{word:#x}"),
        Form::Bool => (word & 0xFF != 0).to_string(),
        Form::Char => match char::from_u32(word as u32) {
            Some(c) => format!("{c:?}"),
            None => format!("{:#x}", word as u32),
        },
    };
    out.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(word: u64, form: &str) -> String {
        let mut out = Vec::new();
        write(word, form_called(form).unwrap(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn words_are_what_their_types_make_of_them() {
        for (word, form, expected) in [
            (0xFFFF_FFFB, "i32", "-5"),
            (0xFFFF_FFFB, "u32", "4294967291"),
            (0xFFFF_FFFB, "i64", "4294967291"),
            (u64::MAX, "i64", "-1"),
            (u64::MAX, "u64", "18446744073709551615"),
            (0x1_FF80, "i8", "-128"),
            (0x1_FF80, "u8", "128"),
            (0x1_8000, "i16", "-32768"),
            (0xABCD_0001, "u16", "1"),
            (42, "x64", "0x2a"),
            (0xFF00, "bool", "false"),
            (1, "bool", "true"),
            (u64::from(b'x'), "char", "'x'"),
            (0x11_0000, "char", "0x110000"),
        ] {
            assert_eq!(shown(word, form), expected, "{word:#x} as {form}");
        }
    }

    #[test]
    fn errors_say_what_where_and_what_is_expected() {
        for (text, found) in [
            ("seek", "expected FUNCTION@arg1/FORM"),
            ("@arg1/i32", "expected FUNCTION@arg1/FORM"),
            ("seek@arg1", "at character 6, expected FUNCTION@arg1/FORM"),
            ("seek@arg0/i32", "at character 6, expected arg1, arg2"),
            ("seek@arg1/i32,x/i8", "at character 15, expected arg1, arg2"),
            ("seek@arg1/int", "at character 11, expected i8, i16"),
        ] {
            let error = WordForms::default().declare(text).unwrap_err();
            assert!(error.to_string().contains(found), "{text}: {error}");
        }
    }
}
