//! Rows of a comparison from fio's JSON: rates, percentiles and CPU time of each direction of each job.

use proptest::prelude::*;
use trueio_compare::fio::rows;
use trueio_fio::results::parse as parse_fio;
use trueio_model::Metric;

fn sample() -> String {
    r#"{"fio version":"fio-3.42","time":"Fri","global options":{"bs":"4k"},"jobs":[{"jobname":"j","error":0,
        "job options":{"rw":"randread"},"usr_cpu":10.0,"sys_cpu":20.0,"job_runtime":2000,
        "read":{"io_bytes":4096000,"total_ios":1000,"short_ios":0,"runtime":2000,"bw_bytes":2048000,"iops":500.5,
            "clat_ns":{"min":100,"max":1000,"mean":200.0,"stddev":1.0,"N":1000,
                       "percentile":{"50.000000":150,"99.000000":900}}},
        "write":{"io_bytes":0,"total_ios":0,"short_ios":0,"runtime":0,"bw_bytes":0,"iops":0.0}}]}"#
        .to_owned()
}

#[test]
fn rates_percentiles_and_cpu_are_read_and_idle_directions_left_out() {
    let rows = rows(&parse_fio(&sample()).unwrap());
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!((row.name.as_str(), row.latency_kind.as_str(), row.percentiles.len()), ("j read", "clat", 2));
    let of = |metric| row.figures.iter().find(|f| f.metric == metric).map(|f| f.value);
    assert_eq!(of(Metric::Iops), Some(500.5));
    assert_eq!((of(Metric::P50), of(Metric::P99), of(Metric::P999)), (Some(150.0), Some(900.0), None));
    // 30 % of 2 s over 1,000 I/Os.
    assert!((of(Metric::CpuPerIo).unwrap() - 600_000.0).abs() < 1e-6);
    assert_eq!(row.options, [("bs".to_owned(), "4k".to_owned()), ("rw".to_owned(), "randread".to_owned())]);
}

#[test]
fn jobs_of_one_client_have_the_names_of_local_jobs() {
    let names = |text: &str| rows(&parse_fio(text).unwrap()).into_iter().map(|row| row.name).collect::<Vec<_>>();
    let local = sample();
    let of_host = |host: &str| {
        let job = local[local.find("\"jobs\":[").unwrap() + 8..local.rfind("]}").unwrap()].to_owned();
        job.replacen("{\"jobname\"", &format!("{{\"hostname\":\"{host}\",\"jobname\""), 1)
    };
    let clients = |jobs: &[String]| format!("{{\"fio version\":\"fio-3.42\",\"client_stats\":[{}]}}", jobs.join(","));
    assert_eq!(names(&local), ["j read"]);
    assert_eq!(names(&clients(&[of_host("a")])), ["j read"]);
    assert_eq!(names(&clients(&[of_host("a"), of_host("a")])), ["j read", "j read"]);
    assert_eq!(names(&clients(&[of_host("a"), of_host("b")])), ["a: j read", "b: j read"]);
}

proptest! {
    #[test]
    fn whatever_can_be_read_has_figures_that_are_positive_numbers(
        at in 0usize..700, with in "[-0-9.e\"{}\\[\\],:a-z]{0,6}"
    ) {
        // A damaged run: some of its text replaced.
        let mut whole = sample();
        let at = at.min(whole.len());
        if whole.is_char_boundary(at) {
            whole.insert_str(at, &with);
        }
        if let Ok(run) = parse_fio(&whole) {
            for figure in rows(&run).iter().flat_map(|row| &row.figures) {
                prop_assert!(figure.value.is_finite() && figure.value > 0.0);
            }
        }
    }
}
