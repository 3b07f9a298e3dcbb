//! NUMA nodes: the processors on which workers run, and the source of their memory.

use crate::input::JobInput;
use crate::option::OptionRow;
use crate::options::process::rows::{CPUS_ALLOWED, NUMA_CPU_NODES, NUMA_MEM_POLICY};
use crate::refusal::{Case, Refusal, Rule};
use trueio_model::{MemoryMode, MemoryPolicy};

/// The processors and the memory that a job's options about nodes select.
#[derive(Default)]
pub(crate) struct NodeChoice {
    /// The processors of the nodes; each worker may run on all of them. `None`: no nodes are given.
    pub(crate) cpus: Option<Vec<u32>>,
    pub(crate) memory_policy: Option<MemoryPolicy>,
}

/// Plans processors and memory by nodes. The machine's nodes are read only if one of the options is set.
pub(crate) fn plan_nodes(values: &JobInput<'_>) -> Result<NodeChoice, Refusal> {
    let (cpu_nodes, policy) = (values.get(NUMA_CPU_NODES), values.get(NUMA_MEM_POLICY));
    if cpu_nodes.is_none() && policy.is_none() {
        return Ok(NodeChoice::default());
    }
    let there = values.facts.memory_nodes().unwrap_or_default();
    let numbers: Vec<u32> = there.iter().map(|(node, _)| *node).collect();
    let named = |option: &'static OptionRow, nodes: &[u32]| match nodes.iter().find(|node| !numbers.contains(node)) {
        Some(node) => {
            Err(values.refuse(option, Rule::NodeNotThere { option: option.name, node: *node, there: numbers.clone() }))
        }
        None if nodes.is_empty() => Ok(numbers.clone()),
        None => Ok(nodes.to_vec()),
    };
    let cpus = match cpu_nodes {
        Some(_) if values.get(CPUS_ALLOWED).is_some() => {
            let rule = Rule::Contradiction {
                one: values.quote(CPUS_ALLOWED),
                other: values.quote(NUMA_CPU_NODES),
                reason: "both name the processors",
                case: Case::NodesAndProcessors,
            };
            return Err(values.refuse(NUMA_CPU_NODES, rule));
        }
        Some(nodes) => {
            let nodes = named(NUMA_CPU_NODES.row(), nodes)?;
            let usable = &values.machine.cpus;
            let of_nodes = there.iter().filter(|(node, _)| nodes.contains(node)).flat_map(|(_, cpus)| cpus).copied();
            let cpus: Vec<u32> = of_nodes.filter(|cpu| usable.is_empty() || usable.contains(cpu)).collect();
            if cpus.is_empty() {
                let rule = Rule::NodeNotThere {
                    option: NUMA_CPU_NODES.name,
                    node: nodes.first().copied().unwrap_or(0),
                    there: Vec::new(),
                };
                return Err(values.refuse(NUMA_CPU_NODES, rule));
            }
            Some(cpus)
        }
        None => None,
    };
    let memory_policy = match policy {
        Some(MemoryPolicy { mode, nodes }) => {
            let takes_none = matches!(mode, MemoryMode::Default | MemoryMode::Local);
            let nodes = if takes_none { Vec::new() } else { named(NUMA_MEM_POLICY.row(), nodes)? };
            Some(MemoryPolicy { mode: *mode, nodes })
        }
        None => None,
    };
    Ok(NodeChoice { cpus, memory_policy })
}
