//! JSON in fio's layout: `"key" : value`, two spaces for each level, braces at the ends of lines, whole numbers without
//! a decimal point, all others with six decimal places.

use std::fmt::Write as _;

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Tree {
    Int(i128),
    Float(f64),
    Text(String),
    List(Vec<Tree>),
    Object(Object),
}

/// Keys and values in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Object(Vec<(String, Tree)>);

impl Object {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn int(&mut self, key: &str, value: impl Into<i128>) -> &mut Self {
        self.put(key, Tree::Int(value.into()))
    }

    pub(super) fn float(&mut self, key: &str, value: f64) -> &mut Self {
        self.put(key, Tree::Float(value))
    }

    pub(super) fn text(&mut self, key: &str, value: impl Into<String>) -> &mut Self {
        self.put(key, Tree::Text(value.into()))
    }

    pub(super) fn object(&mut self, key: &str, value: Object) -> &mut Self {
        self.put(key, Tree::Object(value))
    }

    pub(super) fn list(&mut self, key: &str, value: Vec<Tree>) -> &mut Self {
        self.put(key, Tree::List(value))
    }

    fn put(&mut self, key: &str, value: Tree) -> &mut Self {
        self.0.push((key.to_owned(), value));
        self
    }

    /// Inserts a key before all others.
    pub(super) fn first(&mut self, key: &str, value: &str) {
        self.0.insert(0, (key.to_owned(), Tree::Text(value.to_owned())));
    }

    /// Renders the document on one line, with a line feed at its end.
    pub(super) fn line(&self) -> String {
        let mut text = String::new();
        write_compact(&mut text, &Tree::Object(self.clone()));
        text.push('\n');
        text
    }

    /// Renders the document, with a line feed at its end.
    pub(super) fn document(&self) -> String {
        let mut text = String::new();
        write_object(&mut text, self, 0);
        text.push('\n');
        text
    }
}

fn write_object(text: &mut String, object: &Object, depth: usize) {
    text.push('{');
    for (position, (key, value)) in object.0.iter().enumerate() {
        text.push_str(if position == 0 { "\n" } else { ",\n" });
        indent(text, depth + 1);
        write_text(text, key);
        text.push_str(" : ");
        write_value(text, value, depth + 1);
    }
    text.push('\n');
    indent(text, depth);
    text.push('}');
}

fn write_compact(text: &mut String, value: &Tree) {
    match value {
        Tree::Object(object) => {
            for (position, (key, value)) in object.0.iter().enumerate() {
                text.push(if position == 0 { '{' } else { ',' });
                write_text(text, key);
                text.push(':');
                write_compact(text, value);
            }
            text.push_str(if object.0.is_empty() { "{}" } else { "}" });
        }
        Tree::List(items) => {
            text.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    text.push(',');
                }
                write_compact(text, item);
            }
            text.push(']');
        }
        leaf => write_value(text, leaf, 0),
    }
}

fn write_value(text: &mut String, value: &Tree, depth: usize) {
    match value {
        Tree::Int(number) => {
            let _ = write!(text, "{number}");
        }
        // JSON cannot express NaN and infinity.
        Tree::Float(number) => {
            let _ = write!(text, "{:.6}", if number.is_finite() { *number } else { 0.0 });
        }
        Tree::Text(words) => write_text(text, words),
        Tree::Object(object) => write_object(text, object, depth),
        Tree::List(items) => {
            text.push('[');
            for (position, item) in items.iter().enumerate() {
                text.push_str(if position == 0 { "\n" } else { ",\n" });
                indent(text, depth + 1);
                write_value(text, item, depth + 1);
            }
            text.push('\n');
            indent(text, depth);
            text.push(']');
        }
    }
}

fn indent(text: &mut String, depth: usize) {
    text.extend(std::iter::repeat_n("  ", depth));
}

/// Escapes text for JSON. fio does not escape control characters, which no reader accepts.
fn write_text(text: &mut String, words: &str) {
    // A string is always JSON.
    text.push_str(&serde_json::to_string(words).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_as_fio_lays_them_out() {
        let mut inner = Object::new();
        inner.int("N", 3).float("mean", 1e21);
        let mut object = Object::new();
        object.text("a\tb", "say \"x\"").object("o", inner).list("l", vec![Tree::Int(1), Tree::Float(f64::NAN)]);
        let expected = "{\n  \"a\\tb\" : \"say \\\"x\\\"\",\n  \"o\" : {\n    \"N\" : 3,\n    \"mean\" : \
                        1000000000000000000000.000000\n  },\n  \"l\" : [\n    1,\n    0.000000\n  ]\n}\n";
        assert_eq!(object.document(), expected);
    }
}
