//! Paths of names in a tree that several jobs share, built without an allocation after the first ones.
//!
//! `tree/1/4/f.2.17` is item 17 of owner 2, a file in directory 4, whose parent is directory 1. In private trees the top
//! is `tree.2`. Items that are directories begin with `d`.

use trueio_model::NameSet;

/// Writes a number at the end of a text.
fn push_number(text: &mut String, number: u64) {
    text.push_str(super::Name::of(number).text());
}

/// The path of a name, relative to the directory of its set.
#[derive(Debug)]
pub(super) struct NamePath {
    set: NameSet,
    owner: u64,
    count: u64,
    is_directory: bool,
    /// From the last directory to the first; the path is written from the first.
    chain: Vec<u64>,
    text: String,
    /// The directory whose path the text begins with, and its length.
    holder: Option<(u64, usize)>,
}

impl NamePath {
    pub(super) fn new(set: &NameSet, worker: u32, count: u64, is_directory: bool) -> Self {
        let owner = u64::from(set.owner) + u64::from(worker);
        let (chain, text) = (Vec::with_capacity(64), String::with_capacity(512));
        Self { set: set.clone(), owner, count, is_directory, chain, text, holder: None }
    }

    /// Returns the path of a name. `backwards`: the directories of a tree are counted from the last.
    pub(super) fn of(&mut self, index: u64, backwards: bool) -> &str {
        if self.set.is_tree {
            self.begin(if backwards { self.count - 1 - index } else { index });
            return &self.text;
        }
        let holder = self.set.holder_of(index, self.count);
        match self.holder {
            Some((known, end)) if known == holder => self.text.truncate(end),
            _ => {
                self.begin(holder);
                self.text.push_str(if self.is_directory { "/d." } else { "/f." });
                push_number(&mut self.text, self.owner);
                self.text.push('.');
                self.holder = Some((holder, self.text.len()));
            }
        }
        push_number(&mut self.text, index);
        &self.text
    }

    /// Begins the path with that of a directory of the tree.
    fn begin(&mut self, mut directory: u64) {
        self.chain.clear();
        while directory > 0 {
            self.chain.push(directory);
            directory = self.set.parent_of(directory);
        }
        self.text.clear();
        self.text.push_str("tree");
        if self.set.is_private {
            self.text.push('.');
            push_number(&mut self.text, self.owner);
        }
        while let Some(next) = self.chain.pop() {
            self.text.push('/');
            push_number(&mut self.text, next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_the_directories_from_the_top_and_the_owner() {
        let set = |is_private, is_tree| NameSet {
            owner: 2,
            depth: 2,
            branch: 3,
            in_leaves: false,
            is_private,
            is_tree,
            file_bytes: 0,
            syncs_files: false,
            syncs_filesystem: false,
            is_compared: false,
            is_new: true,
            is_made_here: true,
            stays: false,
        };
        let mut shared = NamePath::new(&set(false, false), 0, 26, false);
        assert_eq!(shared.of(0, false), "tree/f.2.0");
        assert_eq!(shared.of(1, false), "tree/f.2.1");
        assert_eq!(shared.of(2, false), "tree/1/f.2.2");
        assert_eq!(shared.of(25, false), "tree/3/12/f.2.25");
        let mut private = NamePath::new(&set(true, false), 1, 26, true);
        assert_eq!(private.of(9, true), "tree.3/1/4/d.3.9");
        let mut tree = NamePath::new(&set(true, true), 0, 13, true);
        assert_eq!([0, 4, 12].map(|index| tree.of(index, false).to_owned()), ["tree.2", "tree.2/1/4", "tree.2/3/12"]);
        assert_eq!([0, 12].map(|index| tree.of(index, true).to_owned()), ["tree.2/3/12", "tree.2"]);
    }
}
