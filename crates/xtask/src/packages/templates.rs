//! Fills the templates in `packaging/`: version and checksums stand for `@NAME@`.

use super::binary::Target;
use super::{Release, output_of};
use crate::workspace;
use anyhow::{Result, bail};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The templates, by the names of their results.
const TEMPLATES: &[(&str, &str)] = &[
    ("Containerfile", "Containerfile.in"),
    ("trueio.rb", "homebrew/trueio.rb.in"),
    ("trueio.nix", "nix/trueio.nix.in"),
];

/// Writes the results next to the packages.
pub(super) fn write(release: &Release, tarballs: &[(&Target, PathBuf)]) -> Result<()> {
    let mut values = BTreeMap::from([("VERSION".to_owned(), release.version.clone())]);
    for (target, tarball) in tarballs {
        let sum = output_of(release.command("sha256sum").arg(tarball))?;
        let name = format!("SHA256_{}", target.triple.replace('-', "_").to_uppercase());
        values.insert(name, sum.split_whitespace().next().unwrap_or_default().to_owned());
    }
    for (name, template) in TEMPLATES {
        let text = std::fs::read_to_string(workspace::root().join("packaging").join(template))?;
        match filled(&text, &values) {
            Ok(text) => std::fs::write(release.packages.join(name), text)?,
            // Its binary could not be linked here.
            Err(why) => println!("skipped {name}: {why:#}"),
        }
    }
    Ok(())
}

/// Replaces each `@NAME@`.
///
/// # Errors
/// A name has no value.
fn filled(template: &str, values: &BTreeMap<String, String>) -> Result<String> {
    let mut out = String::new();
    for (index, part) in template.split('@').enumerate() {
        match index % 2 {
            0 => out.push_str(part),
            _ => match values.get(part) {
                Some(value) => out.push_str(value),
                None => bail!("`@{part}@` has no value"),
            },
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a template has no name that `dist` does not know.
    #[test]
    fn every_template_can_be_filled_and_an_unknown_name_is_an_error() {
        let mut values = BTreeMap::from([("VERSION".to_owned(), "1.2.3".to_owned())]);
        for target in super::super::binary::TARGETS {
            values.insert(format!("SHA256_{}", target.triple.replace('-', "_").to_uppercase()), "ab".to_owned());
        }
        for (name, template) in TEMPLATES {
            let text = std::fs::read_to_string(workspace::root().join("packaging").join(template)).expect(template);
            let text = filled(&text, &values).unwrap_or_else(|why| panic!("{name}: {why:#}"));
            assert!(!text.contains('@'), "{name}");
        }
        assert!(filled("a @B@ c", &values).is_err());
    }
}
