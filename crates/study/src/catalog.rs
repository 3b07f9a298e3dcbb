//! The studies that are in the program, and those in a folder of the user's.

use crate::study::{DefinitionError, Study, TEXT_BYTES_MAX};
use std::path::Path;

/// A study of the program.
#[derive(Debug, Clone, Copy)]
pub struct Embedded {
    /// Its name: that of its folder in `studies/`.
    pub name: &'static str,
    /// `study.toml`.
    pub definition: &'static str,
    /// `published.csv`.
    pub published: &'static str,
}

/// The studies of the program, by name.
pub const EMBEDDED: &[Embedded] = &include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// Reads the study of that name.
///
/// # Errors
/// The name is unknown; the message lists the known ones.
pub fn embedded(name: &str) -> Result<Study, String> {
    let found = EMBEDDED.iter().find(|study| study.name == name).ok_or_else(|| {
        let names: Vec<&str> = EMBEDDED.iter().map(|study| study.name).collect();
        format!("unknown study `{name}`; known are {}", names.join(", "))
    })?;
    Study::read(found.name, &format!("studies/{name}"), found.definition, found.published).map_err(|e| e.to_string())
}

/// Reads the study in a folder: `study.toml` and `published.csv`.
///
/// # Errors
/// A file cannot be read, or is not valid.
pub fn from_folder(folder: &Path) -> Result<Study, DefinitionError> {
    let place = folder.display().to_string();
    let read = |file: &str| {
        let path = folder.join(file);
        let wrong = |message: String| DefinitionError { place: path.display().to_string(), message };
        trueio_files::read_text(&path, TEXT_BYTES_MAX as u64).map_err(|e| wrong(e.to_string()))
    };
    let name = std::path::absolute(folder).ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    Study::read(&name.unwrap_or_else(|| place.clone()), &place, &read("study.toml")?, &read("published.csv")?)
}
