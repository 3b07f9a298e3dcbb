//! HTML.
/// x
pub fn html(_: &trueio_model::RunRecord) -> String {
    String::new()
}
