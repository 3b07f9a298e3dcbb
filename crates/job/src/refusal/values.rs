//! The values in a refusal that are no options: paths, names, words of the request.

use super::Rule;

impl Rule {
    /// Returns the paths and names in the refusal's text, which are printed as they are.
    pub(crate) fn values(&self) -> Vec<&str> {
        fn of<'a>(values: &[&'a String]) -> Vec<&'a str> {
            values.iter().map(|value| value.as_str()).collect()
        }
        match self {
            Rule::CommandNotAllowed { program } | Rule::ExecNotAllowed { program } => of(&[program]),
            Rule::IologUnusable { log, .. } => of(&[log]),
            Rule::OutputReplaces { path, other, .. } => of(&[path, other]),
            Rule::JobNameTwice { name } => of(&[name]),
            Rule::UnknownOption { option, .. } => of(&[option]),
            Rule::PollImpossible { path, disk, .. } => of(&[path, disk]),
            Rule::NamedForOverwriteNotUsed { path, targets } => {
                std::iter::once(path).chain(targets).map(String::as_str).collect()
            }
            Rule::TargetIsLink { path, target } => of(&[path, target]),
            Rule::DirectoryMissing { path, directory } => of(&[path, directory]),
            Rule::SignatureNotThere { name, found } => std::iter::once(name).chain(found).map(String::as_str).collect(),
            Rule::SignatureNotNamed { path, marks, named } => {
                let names = marks.iter().map(|mark| &mark.name).chain(named);
                std::iter::once(path).chain(names).map(String::as_str).collect()
            }
            Rule::SizeBeyondFreeSpace { mount_point, .. } => of(&[mount_point]),
            Rule::OutputImpossible { path, .. }
            | Rule::OutputUnrecognised { path, .. }
            | Rule::OutputExists { path, .. }
            | Rule::DirectImpossible { path, .. }
            | Rule::Misaligned { path, .. }
            | Rule::AtomicImpossible { path, .. }
            | Rule::ExistingTargetNotNamed { path, .. }
            | Rule::NamedForOverwriteMissing { path }
            | Rule::TargetInUse { path, .. }
            | Rule::DeviceNotExamined { path, .. }
            | Rule::GeneratedNameTaken { path }
            | Rule::WrongKindOfTarget { path, .. }
            | Rule::TargetUnreadable { path, .. }
            | Rule::CannotCreateHere { path, .. }
            | Rule::SizeMissing { path }
            | Rule::SizeUnknown { path, .. }
            | Rule::PercentOfNothing { path, .. }
            | Rule::SizeBeyondTarget { path, .. }
            | Rule::BlockBeyondSize { path, .. }
            | Rule::SharesBeyondSize { path, .. }
            | Rule::TrimUnsupported { path, .. }
            | Rule::UserMayNot { path, .. } => of(&[path]),
            Rule::NoJobs
            | Rule::SteadyState { .. }
            | Rule::CommandImpossible { .. }
            | Rule::SourceImpossible { .. }
            | Rule::JobName { .. }
            | Rule::BadValue { .. }
            | Rule::Contradiction { .. }
            | Rule::Incomplete { .. }
            | Rule::EngineUnavailable { .. }
            | Rule::EngineLacks { .. }
            | Rule::DepthOnBlockingEngine { .. }
            | Rule::VerifyImpossible { .. }
            | Rule::ZonesImpossible { .. }
            | Rule::ProcessorNotThere { .. }
            | Rule::NodeNotThere { .. }
            | Rule::PriorityNotPermitted { .. }
            | Rule::UserNotPermitted { .. }
            | Rule::BuffersBeyondMemory { .. }
            | Rule::MapsBeyondMemory { .. } => Vec::new(),
        }
    }
}
