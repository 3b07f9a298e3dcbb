//! Parses memory nodes: `0,2-3` or `all`, and policies: `bind:0,1`.

use super::read_cpus;
use trueio_model::{MemoryMode, MemoryPolicy};

/// Parses a list of nodes; `all` is an empty one.
pub(super) fn read_nodes(text: &str) -> Result<Vec<u32>, String> {
    match text.trim() {
        "all" => Ok(Vec::new()),
        list => read_cpus(list).map_err(|reason| reason.replace("processor", "node")),
    }
}

pub(super) fn write_nodes(nodes: &[u32]) -> String {
    match nodes {
        [] => "all".to_owned(),
        nodes => nodes.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
    }
}

/// Parses `MODE[:NODES]`. If a mode needs nodes, an empty list means all.
pub(super) fn read_policy(text: &str) -> Result<MemoryPolicy, String> {
    let (word, list) = match text.trim().split_once(':') {
        Some((word, list)) => (word, Some(list)),
        None => (text.trim(), None),
    };
    let mode = MemoryMode::ALL.into_iter().find(|mode| mode.name() == word);
    let mode = mode.ok_or_else(|| {
        let names = MemoryMode::ALL.map(MemoryMode::name).join(", ");
        format!("`{word}` is none of {names}")
    })?;
    let nodes = match (mode, list) {
        (MemoryMode::Default | MemoryMode::Local, None) => Vec::new(),
        (MemoryMode::Default | MemoryMode::Local, Some(_)) => return Err(format!("`{word}` takes no nodes")),
        (MemoryMode::Prefer, Some(list)) => match read_nodes(list)? {
            nodes if nodes.len() == 1 => nodes,
            _ => return Err(format!("`prefer` takes one node, not `{list}`")),
        },
        (_, Some(list)) => read_nodes(list)?,
        (_, None) => return Err(format!("`{word}` needs nodes: `{word}:0`")),
    };
    Ok(MemoryPolicy { mode, nodes })
}

pub(super) fn write_policy(policy: &MemoryPolicy) -> String {
    match policy.mode {
        MemoryMode::Default | MemoryMode::Local => policy.mode.name().to_owned(),
        mode => format!("{}:{}", mode.name(), write_nodes(&policy.nodes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_have_the_nodes_that_they_need_and_no_others() {
        for (text, canonical) in [
            ("default", "default"),
            ("local", "local"),
            ("prefer:1", "prefer:1"),
            ("bind:0,2-3", "bind:0,2,3"),
            ("interleave:all", "interleave:all"),
        ] {
            let policy = read_policy(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(write_policy(&policy), canonical);
            assert_eq!(read_policy(canonical), Ok(policy));
        }
        for text in
            ["", "bind", "bind:", "bind:x", "prefer", "prefer:0,1", "prefer:all", "local:0", "nowhere:0", "bind:2-1"]
        {
            assert!(read_policy(text).is_err(), "{text}");
        }
        assert_eq!(read_nodes("all"), Ok(vec![]));
        assert!(read_nodes("0,0").unwrap_err().contains("node 0 is named twice"));
    }
}
