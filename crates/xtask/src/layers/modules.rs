//! Reads the module tree of a crate: files, what each defines, and which names each takes from others.
//!
//! Works on tokens, not on types: names are resolved through `use` declarations, re-exports, globs
//! and nested modules to the file that defines them. Items under `#[cfg(test)]` or `#[test]` are left
//! out.
//!
//! Limits: methods and fields are not followed (their receiver's type is unknown here), nor paths
//! inside string literals (`serde(with = "…")`), nor items that a macro call expands to. A path that
//! ends at an unknown name in a known module counts for that module's file.

use anyhow::{Context, Result, anyhow};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Names taken: taking file → giving file → names.
pub(super) type Uses = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// The modules of a crate.
#[derive(Debug)]
pub(super) struct Tree {
    modules: Vec<Module>,
    /// Files, relative to the crate's directory, in the order of reading.
    files: Vec<String>,
    /// Files that are only compiled for tests.
    test_files: BTreeSet<String>,
}

/// One module: a file, or a `mod name { … }` inside one.
#[derive(Debug, Default)]
struct Module {
    file: usize,
    parent: Option<usize>,
    /// Child modules (several of one name where they depend on `cfg`).
    children: BTreeMap<String, Vec<usize>>,
    /// Names of the items that it defines.
    items: BTreeSet<String>,
    /// Names that `use` brings in, with the path of each (several where they depend on `cfg`).
    imports: BTreeMap<String, Vec<Import>>,
    /// Paths of `use path::*`.
    globs: Vec<Vec<String>>,
    /// Paths of two or more segments in code.
    paths: BTreeSet<Vec<String>>,
    /// Single identifiers in code, and first segments of paths.
    identifiers: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Import {
    path: Vec<String>,
    is_public: bool,
}

/// What a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Found {
    /// An item of this name that this module defines.
    Item(usize, String),
    Module(usize),
}

impl Tree {
    /// Reads the files that `roots` lead to; `directory` is the crate's.
    pub(super) fn read(roots: &[PathBuf], directory: &Path) -> Result<Self> {
        let mut tree = Tree { modules: Vec::new(), files: Vec::new(), test_files: BTreeSet::new() };
        for root in roots {
            tree.read_file(root, directory, None, root.parent().unwrap_or(directory))?;
        }
        Ok(tree)
    }

    /// The files of the tree, relative to the crate's directory, without those for tests.
    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(String::as_str)
    }

    /// True if `file` is compiled for tests only: it, or the module above it, is `#[cfg(test)]`.
    pub(super) fn is_test_file(&self, file: &str) -> bool {
        let is_below = |test: &String| file.starts_with(&format!("{}/", test.trim_end_matches(".rs")));
        self.test_files.contains(file) || self.test_files.iter().any(is_below)
    }

    /// Reads a module's file; `folder` holds the files of its children.
    fn read_file(&mut self, path: &Path, directory: &Path, parent: Option<usize>, folder: &Path) -> Result<usize> {
        let name = path.strip_prefix(directory).unwrap_or(path).to_string_lossy().into_owned();
        let source = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let tokens: TokenStream = source.parse().map_err(|error| anyhow!("{}: {error}", path.display()))?;
        self.files.push(name);
        let module = self.modules.len();
        self.modules.push(Module { file: self.files.len() - 1, parent, ..Module::default() });
        let mut scan = Scan { tree: self, directory, file: path, folder: folder.to_owned(), path: None };
        scan.items(module, tokens)?;
        Ok(module)
    }

    /// Returns which file takes which names from which other file.
    ///
    /// A re-export (`pub use`) takes a name only if code of the same module uses it, too. Naming a
    /// module (`use crate::a;`) takes nothing; what is then named through it (`a::b`) does.
    pub(super) fn uses(&self) -> Uses {
        let mut uses = Uses::new();
        for (index, module) in self.modules.iter().enumerate() {
            let mut take = |path: &[String]| {
                for found in self.resolve(index, path, &mut Vec::new()) {
                    let Found::Item(giver, name) = found else { continue };
                    if self.modules[giver].file == module.file || self.encloses(giver, index) {
                        continue;
                    }
                    let giver = &self.files[self.modules[giver].file];
                    let names = uses.entry(self.files[module.file].clone()).or_default();
                    names.entry(giver.clone()).or_default().insert(name);
                }
            };
            module.paths.iter().for_each(|path| take(path));
            for (name, imports) in &module.imports {
                let is_used = module.identifiers.contains(name);
                imports.iter().filter(|import| is_used || !import.is_public).for_each(|import| take(&import.path));
            }
            if !module.globs.is_empty() {
                let is_own = |name: &String| {
                    module.items.contains(name)
                        || module.imports.contains_key(name)
                        || module.children.contains_key(name)
                };
                for name in module.identifiers.iter().filter(|name| !is_own(name)) {
                    take(std::slice::from_ref(name));
                }
            }
        }
        uses
    }

    /// True if `inner` is a module inside `outer`, at any depth.
    fn encloses(&self, outer: usize, inner: usize) -> bool {
        std::iter::successors(self.modules[inner].parent, |&module| self.modules[module].parent)
            .any(|module| module == outer)
    }

    /// Follows `path` from module `from`; nothing if it leads out of the crate, several where `cfg` decides.
    fn resolve(&self, from: usize, path: &[String], seen: &mut Vec<(usize, String)>) -> Vec<Found> {
        let mut start = from;
        let mut rest = path;
        let mut is_anchored = false;
        while let Some((first, after)) = rest.split_first() {
            match (first.as_str(), self.modules[start].parent) {
                ("crate", _) => {
                    while let Some(parent) = self.modules[start].parent {
                        start = parent;
                    }
                }
                ("super", Some(parent)) => start = parent,
                ("self", _) => {}
                _ => break,
            }
            is_anchored = true;
            rest = after;
        }
        let mut reached = vec![Found::Module(start)];
        for (index, segment) in rest.iter().enumerate() {
            let is_last = index + 1 == rest.len();
            let mut next = Vec::new();
            for found in reached {
                let Found::Module(module) = found else {
                    // What follows an item is its variant or its function.
                    next.push(found);
                    continue;
                };
                let known = self.lookup(module, segment, is_last, seen);
                // A name that a macro call defines, as far as can be seen here.
                if known.is_empty() && (is_anchored || index > 0) {
                    next.push(Found::Item(module, segment.clone()));
                }
                next.extend(known);
            }
            reached = next;
        }
        reached
    }

    /// Looks a name up in a module: its items, children, imports, globs.
    fn lookup(&self, module: usize, name: &str, is_last: bool, seen: &mut Vec<(usize, String)>) -> Vec<Found> {
        let Module { children, items, imports, globs, .. } = &self.modules[module];
        let item = items.contains(name).then(|| Found::Item(module, name.to_owned()));
        // A function may have the name of a module.
        if is_last && item.is_some() {
            return item.into_iter().collect();
        }
        if let Some(children) = children.get(name) {
            return children.iter().map(|&child| Found::Module(child)).collect();
        }
        let key = (module, name.to_owned());
        if item.is_some() || seen.contains(&key) {
            return item.into_iter().collect();
        }
        seen.push(key);
        let imported: Vec<Found> = imports
            .get(name)
            .into_iter()
            .flatten()
            .flat_map(|import| self.resolve(module, &import.path, seen))
            .collect();
        if !imported.is_empty() {
            return imported;
        }
        let mut found = Vec::new();
        for glob in globs {
            for source in self.resolve(module, glob, seen) {
                if let Found::Module(source) = source {
                    found.extend(self.lookup(source, name, is_last, seen));
                }
            }
        }
        found
    }
}

/// Reads tokens into modules.
struct Scan<'a> {
    tree: &'a mut Tree,
    directory: &'a Path,
    /// The file that is read.
    file: &'a Path,
    /// Where files of children are.
    folder: PathBuf,
    /// From `#[path = "…"]` until the `mod` that it belongs to.
    path: Option<String>,
}

impl Scan<'_> {
    /// Reads the items of a module.
    fn items(&mut self, module: usize, tokens: TokenStream) -> Result<()> {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            at = self.item_token(module, &tokens, at)?;
        }
        Ok(())
    }

    /// Reads what begins at `at` on the level of items; returns where the rest begins.
    fn item_token(&mut self, module: usize, tokens: &[TokenTree], at: usize) -> Result<usize> {
        if let Some((after, attributes)) = attributes(tokens, at) {
            if !attributes.is_test {
                self.path = attributes.path;
                return Ok(after);
            }
            let end = item_end(tokens, after);
            self.note_test_file(&tokens[after..end], attributes.path);
            return Ok(end);
        }
        let word = |index: usize| match tokens.get(index) {
            Some(TokenTree::Ident(word)) => word.to_string(),
            _ => String::new(),
        };
        let keyword = word(at);
        let name = word(at + 1);
        match keyword.as_str() {
            "mod" if !name.is_empty() => {
                let path = self.path.take();
                self.module(module, &name, tokens.get(at + 2), path)?;
                Ok(at + 3)
            }
            "macro_rules" => {
                let own = word(at + 2);
                self.tree.modules[module].items.insert(own);
                Ok(at + 3)
            }
            "struct" | "enum" | "union" | "trait" | "type" | "fn" | "const" | "static" if !name.is_empty() => {
                let name = if name == "mut" { word(at + 2) } else { name };
                // `const fn`, `const unsafe fn`: the name follows the next keyword.
                if !["fn", "unsafe", "extern", "async"].contains(&name.as_str()) {
                    self.tree.modules[module].items.insert(name);
                    return Ok(at + 2);
                }
                Ok(at + 1)
            }
            _ => Ok(code_token(&mut self.tree.modules[module], tokens, at)),
        }
    }

    /// Enters a child: a file for `mod name;`, tokens for `mod name { … }`.
    fn module(&mut self, parent: usize, name: &str, body: Option<&TokenTree>, path: Option<String>) -> Result<()> {
        let folder = self.folder.join(name);
        let child = if let Some(TokenTree::Group(group)) = body {
            let child = self.tree.modules.len();
            let file = self.tree.modules[parent].file;
            self.tree.modules.push(Module { file, parent: Some(parent), ..Module::default() });
            let mut scan = Scan { tree: self.tree, directory: self.directory, file: self.file, folder, path: None };
            scan.items(child, group.stream())?;
            child
        } else {
            let file = self.file_of(name, path.as_deref());
            let is_named = path.is_some() || file.ends_with("mod.rs");
            let folder = if is_named { file.parent().unwrap_or(&folder).to_owned() } else { folder };
            self.tree.read_file(&file, self.directory, Some(parent), &folder)?
        };
        self.tree.modules[parent].children.entry(name.to_owned()).or_default().push(child);
        Ok(())
    }

    /// Notes the file of a `mod name;` that only tests have.
    fn note_test_file(&mut self, item: &[TokenTree], path: Option<String>) {
        let mut words = item.iter().skip_while(|token| token.to_string() != "mod").skip(1);
        if let (Some(TokenTree::Ident(name)), Some(TokenTree::Punct(_))) = (words.next(), words.next()) {
            let file = self.file_of(&name.to_string(), path.as_deref());
            let file = file.strip_prefix(self.directory).unwrap_or(&file).to_string_lossy().into_owned();
            self.tree.test_files.insert(file);
        }
    }

    /// Returns the file of `mod name;`, which `#[path]` may name.
    fn file_of(&self, name: &str, path: Option<&str>) -> PathBuf {
        if let Some(path) = path {
            return self.file.parent().unwrap_or(self.directory).join(path);
        }
        let plain = self.folder.join(format!("{name}.rs"));
        if plain.exists() { plain } else { self.folder.join(name).join("mod.rs") }
    }
}

/// What the attributes before an item mean here.
#[derive(Default)]
struct Attributes {
    is_test: bool,
    /// The file that `#[path = "…"]` names.
    path: Option<String>,
}

/// Reads the attributes that begin at `at`; returns where they end.
fn attributes(tokens: &[TokenTree], mut at: usize) -> Option<(usize, Attributes)> {
    let mut found: Option<Attributes> = None;
    while matches!(tokens.get(at), Some(TokenTree::Punct(mark)) if mark.as_char() == '#') {
        // `#![…]` belongs to what encloses it.
        let bang = matches!(tokens.get(at + 1), Some(TokenTree::Punct(mark)) if mark.as_char() == '!');
        let Some(TokenTree::Group(group)) = tokens.get(at + 1 + usize::from(bang)) else { break };
        let text: String = group.stream().to_string().split_whitespace().collect();
        at += 2 + usize::from(bang);
        let found = found.get_or_insert_default();
        found.is_test |= !bang && (text == "test" || text.starts_with("cfg(test") || text.starts_with("cfg(all(test"));
        if let Some(path) = text.strip_prefix("path=") {
            found.path = Some(path.trim_matches('"').to_owned());
        }
    }
    found.map(|attributes| (at, attributes))
}

/// Returns where the item, field or statement that begins at `at` ends.
fn item_end(tokens: &[TokenTree], at: usize) -> usize {
    const KEYWORDS: [&str; 15] = [
        "pub",
        "fn",
        "mod",
        "use",
        "struct",
        "enum",
        "impl",
        "const",
        "static",
        "type",
        "trait",
        "unsafe",
        "extern",
        "async",
        "macro_rules",
    ];
    let is_item = tokens.get(at).is_some_and(|token| KEYWORDS.contains(&token.to_string().as_str()));
    let ends = |token: &TokenTree| match token {
        TokenTree::Punct(mark) => mark.as_char() == ';' || (!is_item && mark.as_char() == ','),
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        _ => false,
    };
    tokens[at..].iter().position(ends).map_or(tokens.len(), |length| at + length + 1)
}

/// Reads code: paths, identifiers, `use` declarations.
fn code(module: &mut Module, tokens: TokenStream) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        at = match attributes(&tokens, at) {
            Some((after, attributes)) if attributes.is_test => item_end(&tokens, after),
            Some((after, _)) => after,
            None => code_token(module, &tokens, at),
        };
    }
}

/// Reads what begins at `at`; returns where the rest begins.
fn code_token(module: &mut Module, tokens: &[TokenTree], at: usize) -> usize {
    let is_mark = |index: usize, mark: char| matches!(tokens.get(index), Some(TokenTree::Punct(punct)) if punct.as_char() == mark);
    match &tokens[at] {
        TokenTree::Group(group) => {
            code(module, group.stream());
            at + 1
        }
        TokenTree::Ident(word) if *word == "use" => {
            let end = tokens[at..].iter().position(|token| token.to_string() == ";").map_or(tokens.len(), |n| at + n);
            let is_public = at > 0
                && match &tokens[at - 1] {
                    TokenTree::Ident(before) => *before == "pub",
                    TokenTree::Group(_) => at > 1 && tokens[at - 2].to_string() == "pub",
                    _ => false,
                };
            // `impl Trait + use<'a>` is no declaration.
            if !is_mark(at + 1, '<') {
                use_tree(module, &[], &tokens[at + 1..end], is_public);
                return end + 1;
            }
            at + 1
        }
        TokenTree::Ident(_) => {
            let mut path = Vec::new();
            let mut next = at;
            while let Some(TokenTree::Ident(word)) = tokens.get(next) {
                path.push(word.to_string());
                next += 1;
                if !(is_mark(next, ':') && is_mark(next + 1, ':')) {
                    break;
                }
                next += 2;
            }
            let is_field = at > 0 && is_mark(at - 1, '.') && !(at > 1 && is_mark(at - 2, '.'));
            // `::name` is a crate; `<T as Trait>::name` is resolved by types.
            let is_tail = at > 1 && is_mark(at - 1, ':') && is_mark(at - 2, ':');
            if !is_field && !is_tail {
                module.identifiers.insert(path[0].clone());
                if path.len() > 1 {
                    module.paths.insert(path);
                }
            }
            next.max(at + 1)
        }
        _ => at + 1,
    }
}

/// Reads one branch of a `use` declaration; `prefix` is the path so far.
fn use_tree(module: &mut Module, prefix: &[String], tokens: &[TokenTree], is_public: bool) {
    let mut path = prefix.to_vec();
    let mut alias = None;
    let mut words = tokens.iter();
    while let Some(token) = words.next() {
        match token {
            TokenTree::Ident(word) if *word == "as" => alias = words.next().map(ToString::to_string),
            TokenTree::Ident(word) => path.push(word.to_string()),
            TokenTree::Punct(mark) if mark.as_char() == '*' => return module.globs.push(path),
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ',');
                for branch in inner.split(is_comma).filter(|branch| !branch.is_empty()) {
                    use_tree(module, &path, branch, is_public);
                }
                return;
            }
            // A leading `::` names another crate.
            TokenTree::Punct(_) if path.is_empty() => return,
            _ => {}
        }
    }
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let name = alias.or_else(|| path.last().cloned()).unwrap_or_default();
    module.imports.entry(name).or_default().push(Import { path, is_public });
}
