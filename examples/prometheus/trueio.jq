# Turns a record (`trueio baseline --json -`) into Prometheus' text format: `jq -r -f trueio.jq RECORD`.
# A figure that the evidence contradicts is not exported; `trueio_verdict` tells that it is missing, and why.

def escaped: tostring | gsub("\\\\"; "\\\\") | gsub("\""; "\\\"") | gsub("\n"; "\\n");
def labels: to_entries | map("\(.key)=\"\(.value | escaped)\"") | join(",") | "{\(.)}";

. as $record
| ($record.targets[0].path // "unknown") as $target
| [ $record.phases[] as $phase
    | $phase.jobs[] as $job
    | $job.ops[]
    | { target: $target, job: $job.name, op: .op } as $labels
    | { $labels, op: ., job: $job, verdict: $phase.verdict } ] as $figures
| ($figures | map(select(.verdict != "contradicted" and .job.elapsed_ns > 0))) as $shown
| "# HELP trueio_run_timestamp_seconds When the run began.",
  "# TYPE trueio_run_timestamp_seconds gauge",
  "trueio_run_timestamp_seconds\({ target: $target } | labels) \($record.started_unix_s)",
  "# HELP trueio_verdict 0 supported, 1 unverified, 2 suspect, 3 contradicted.",
  "# TYPE trueio_verdict gauge",
  ($record.phases[] | "trueio_verdict\({ target: $target, phase: .name } | labels) \({ supported: 0, unverified: 1, suspect: 2, contradicted: 3 }[.verdict])"),
  "# HELP trueio_bandwidth_bytes_per_second Bytes transferred a second.",
  "# TYPE trueio_bandwidth_bytes_per_second gauge",
  ($shown[] | "trueio_bandwidth_bytes_per_second\(.labels | labels) \(.op.byte_count / .job.elapsed_ns * 1e9)"),
  "# HELP trueio_ios_per_second I/Os completed a second.",
  "# TYPE trueio_ios_per_second gauge",
  ($shown[] | "trueio_ios_per_second\(.labels | labels) \(.op.io_count / .job.elapsed_ns * 1e9)"),
  "# HELP trueio_latency_seconds Percentiles of the latency that the sample supports.",
  "# TYPE trueio_latency_seconds gauge",
  ($shown[] | .labels as $labels | .op.percentiles[]
    | "trueio_latency_seconds\($labels + { percentile: .percent } | labels) \(.latency_ns / 1e9)")
